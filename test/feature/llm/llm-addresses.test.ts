/** Where providers are called: the vendor's own names, dialled through a forward proxy. */
import assert from "node:assert/strict";
import { call } from "../../support/clients/http.ts";
import {
  documents,
  GATEWAY,
  pemObject,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startNamedVendors } from "../../support/servers/llm/named-vendors.ts";

interface Row {
  /** The provider as YAML flow, such as `llma: {}`. */
  readonly provider: string;
  readonly path: string;
  readonly model: string;
  readonly expect: readonly [authority: string, path: string];
  /** Name of the model that the provider is sent. */
  readonly sent?: string;
  /** Inline policies besides TLS and the tunnel. */
  readonly policies?: string;
}

const CHAT = "/v1/chat/completions";
const RESPONSES = "/v1/responses";
const RES_A = "llmd: {resourceName: acme, resourceType: ResA";
const RES_B = "llmd: {resourceName: acme, resourceType: ResB, projectName: lab";
const ACME = "acme.openai.azure.com";
const FOUNDRY = "acme-resource.services.ai.azure.com";

const GEMINI = "generativelanguage.googleapis.com";
const VERTEX = "llmg: {projectId: p-1";
const LOCATIONS = "/v1/projects/p-1/locations";
/** The path names the model, and the body does not. */
const NONE = "";

const ROWS: readonly Row[] = [
  { provider: "llma: {}", path: CHAT, model: "gpt-4o", expect: ["api.openai.com", CHAT] },
  { provider: "llma: {}", path: RESPONSES, model: "gpt-4o", expect: ["api.openai.com", RESPONSES] },
  { provider: "llmb: {}", path: CHAT, model: "gpt-4o", expect: ["api.githubcopilot.com", "/chat/completions"] },
  { provider: "llmb: {}", path: RESPONSES, model: "gpt-5", expect: ["api.githubcopilot.com", "/responses"] },
  {
    provider: "llmb: {model: grok-code}",
    path: RESPONSES,
    model: "gpt-4o",
    sent: "grok-code",
    expect: ["api.githubcopilot.com", "/responses"],
  },
  {
    provider: `llmc: {endpoint: "https://${ACME}/", apiVersion: "2024-10-21", deploymentName: chat}`,
    path: CHAT,
    model: "gpt-4o",
    sent: "chat",
    expect: [ACME, "/openai/deployments/chat/chat/completions?api-version=2024-10-21"],
  },
  {
    provider: `llmc: {endpoint: "${ACME}", apiVersion: "2025-03-01-preview", deploymentName: chat}`,
    path: RESPONSES,
    model: "gpt-4o",
    sent: "chat",
    expect: [ACME, "/openai/responses?api-version=2025-03-01-preview"],
  },
  { provider: `llmc: {endpoint: "${ACME}"}`, path: CHAT, model: "m", expect: [ACME, "/openai/v1/chat/completions"] },
  {
    provider: 'llmc: {endpoint: "llm.corp.test:8443", apiVersion: preview, deploymentName: d}',
    path: CHAT,
    model: "m",
    sent: "d",
    expect: ["llm.corp.test:8443", "/openai/v1/chat/completions?api-version=preview"],
  },
  {
    provider: "llmc: {endpoint: lab.services.ai.azure.com}",
    path: CHAT,
    model: "m",
    expect: ["lab.services.ai.azure.com", "/api/projects/lab/openai/v1/chat/completions"],
  },
  { provider: `${RES_A}}`, path: RESPONSES, model: "m", expect: [ACME, "/openai/v1/responses"] },
  {
    provider: `${RES_A}, apiVersion: "2024-10-21", model: a b}`,
    path: CHAT,
    model: "m",
    sent: "a b",
    expect: [ACME, "/openai/deployments/a%20b/chat/completions?api-version=2024-10-21"],
  },
  { provider: "llmf: {}", path: CHAT, model: "g", expect: [GEMINI, "/v1beta/models/g:generateContent"], sent: NONE },
  {
    provider: "llmf: {model: tunedModels/mine}",
    path: CHAT,
    model: "g",
    expect: [GEMINI, "/v1beta/tunedModels/mine:generateContent"],
    sent: NONE,
  },
  {
    provider: `${VERTEX}}`,
    path: CHAT,
    model: "meta/llama",
    expect: ["aiplatform.googleapis.com", `${LOCATIONS}/global/endpoints/openapi/chat/completions`],
  },
  {
    provider: `${VERTEX}, region: eu, model: google/gemini-2.5-pro}`,
    path: CHAT,
    model: "m",
    expect: [
      "aiplatform.eu.rep.googleapis.com",
      `${LOCATIONS}/eu/publishers/google/models/gemini-2.5-pro:generateContent`,
    ],
    sent: NONE,
  },
  {
    provider: `${VERTEX}, region: us-east5, model: gemini-2.5-pro}`,
    path: CHAT,
    model: "m",
    expect: [
      "us-east5-aiplatform.googleapis.com",
      `${LOCATIONS}/us-east5/publishers/google/models/gemini-2.5-pro:generateContent`,
    ],
    sent: NONE,
  },
  { provider: `${RES_B}}`, path: RESPONSES, model: "m", expect: [FOUNDRY, "/api/projects/lab/openai/v1/responses"] },
];

/** Where a provider may stand in a GwBackend. */
const PLACES = {
  "ai.groups[].providers[]": (provider: string, policies: string) =>
    `  ai: {groups: [{providers: [{name: one, ${provider}, policies: {${policies}}}]}]}`,
  "ai.provider": (provider: string, policies: string) => `  ai: {provider: {${provider}}}\n  policies: {${policies}}`,
};
type Place = keyof typeof PLACES;

/** Returns the objects of a row: its backend at /r<number>. */
function objectsOf(place: Place, { provider, policies = "auth: {key: secret}" }: Row, number: number): string {
  const tls = "tls: {caCertificateRefs: [{name: trusted}]}";
  const tunnel = "tunnel: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: proxy}}";
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: r${number}}
spec:
${PLACES[place](provider, `${policies}, ${tls}, ${tunnel}`)}
`;
  return documents(backend, route(`r${number}`, `r${number}`, `/r${number}`));
}

async function serve(context: ProofContext, rows: readonly Row[], place: Place = "ai.provider") {
  const names = [...new Set(rows.map(({ expect: [authority] }) => authority.replace(/:\d+$/, "")))];
  const vendors = await startNamedVendors(context, names);
  const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": vendors.authority });
  const proxy = staticBackend("proxy", vendors.proxy.port);
  const gateway = await startGateway(
    context,
    documents(GATEWAY, trusted, proxy, ...rows.map((row, number) => objectsOf(place, row, number))),
  );
  return { gateway, ...vendors };
}

function send(gateway: TestGateway, { path, model }: Row, number: number) {
  const said = [{ role: "user", content: "hi" }];
  const body = JSON.stringify({ model, max_tokens: 9, ...(path === RESPONSES ? { input: said } : { messages: said }) });
  const headers = { "content-type": "application/json", authorization: "Bearer client", "anthropic-beta": "b" };
  return call(`${gateway.url()}/r${number}${path}`, { method: "POST", headers, body });
}

const SETTINGS =
  "llmb.model llmc.endpoint llmc.apiVersion llmc.deploymentName llmd.resourceName llmd.resourceType llmd.apiVersion " +
  "llmd.model llmd.projectName llmf.model llmg.projectId llmg.region llmg.model";

for (const place of ["ai.groups[].providers[]", "ai.provider"] as const)
  prove(
    SETTINGS.split(" ").map((name) => `GwBackend spec.${place}.${name}`),
    `every provider is dialled, greeted and asked by its own name, on the path of format and version (${place})`,
    async (context) => {
      const { gateway, seen, proxy } = await serve(context, ROWS, place);
      for (const [number, row] of ROWS.entries()) {
        const { status, body } = await send(gateway, row, number);
        assert.equal(status, 200, `${row.provider}: ${body}`);
        const [authority, path] = row.expect;
        const last = seen.at(-1);
        assert.deepEqual(last?.at, [authority.replace(/:\d+$/, ""), path, authority], row.provider);
        assert.equal(last.model ?? NONE, row.sent ?? row.model);
        assert.equal(last.headers["authorization"], "Bearer secret");
        assert.ok(proxy.asked.includes(`CONNECT ${authority.includes(":") ? authority : `${authority}:443`}`));
      }
    },
  );

prove([], "Claude models of Azure are sent messages, with the version of that API", async (context) => {
  const row: Row = { ...(ROWS.at(-1) as Row), path: CHAT, model: "claude-opus-4-1" }; // the row of Foundry
  const { gateway, seen } = await serve(context, [row]);
  // What the server answers is no message.
  await send(gateway, row, 0);
  const [last] = seen;
  assert.deepEqual(last?.at, [FOUNDRY, "/anthropic/v1/messages", FOUNDRY]);
  assert.deepEqual([last.headers["anthropic-version"], last.headers["anthropic-beta"]], ["2023-06-01", "b"]);
});

prove([], "the clouds are not called with the client's credential where none is configured", async (context) => {
  const rows = ROWS.filter(({ provider }) =>
    /^llmc: {endpoint: "[^"]*"}$|^llmg: {projectId: [^,]*}$/.test(provider),
  ).map((row) => ({ ...row, policies: "http: {version: HTTP1}" }));
  assert.equal(rows.length, 2);
  const { gateway, seen } = await serve(context, rows);
  for (const [number, row] of rows.entries()) {
    const { status, body } = await send(gateway, row, number);
    assert.deepEqual([status, JSON.parse(body).error.message], [500, "backend authentication failed"], row.provider);
  }
  assert.equal(seen.length, 0);
});
