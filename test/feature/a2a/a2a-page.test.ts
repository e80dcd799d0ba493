/** The examples of docs/a2a.md and the one in examples/a2a are served as they stand, by agents on loopback. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { SendMessageRequest } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";
import { parseAllDocuments, stringify } from "yaml";
import { startEchoAgent } from "../../../examples/a2a/echo-agent.ts";
import { documents, pemObject, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { RUNTIME_HOST, RUNTIME_KEYS, RUNTIME_PATH, startAgentRuntime } from "../../support/servers/agent-runtime.ts";
import { startForwardProxy } from "../../support/servers/forward-proxy.ts";
import { createSelfSigned } from "../../support/servers/tls-upstream.ts";

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: { a2a?: { host: string; port: number }; policies?: Record<string, unknown> };
  readonly stringData: Record<string, string>;
}

const ROOT = join(import.meta.dirname, "../../..");
const PAGE = readFileSync(join(ROOT, "docs/a2a.md"), "utf8");
const EXAMPLES = new Map(
  [...PAGE.matchAll(/^##+ (.*)\n(?:(?!^##).*\n)*?```yaml\n((?:.*\n)*?)```$/gm)].map(([, heading = "", yaml = ""]) => [
    heading,
    yaml,
  ]),
);

function read(text: string | undefined): Manifest[] {
  assert.ok(text !== undefined);
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest); // documents of the page are such objects
}

/** Returns the first example with the objects of another one in place of those of the same name. */
function withFirst(own: readonly Manifest[]): Manifest[] {
  const names = new Set(own.map(({ kind, metadata: { name } }) => `${kind}/${name}`));
  const others = read(EXAMPLES.get("An agent")).filter(({ kind, metadata }) => !names.has(`${kind}/${metadata.name}`));
  return [...others, ...own];
}

function find(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  assert.ok(found, `${kind} ${name}`);
  return found;
}

function print(manifests: readonly Manifest[]): string[] {
  return manifests.map((manifest) => stringify(manifest));
}

async function startAgent(context: ProofContext): Promise<number> {
  const server = await startEchoAgent(0);
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port; // a TCP server has such an address
}

/** Talks to the agent with the official client, which finds it by its card. */
async function talk(url: string): Promise<void> {
  const client = await new ClientFactory().createFromUrl(url);
  const request = { message: { messageId: "1", role: "ROLE_USER", parts: [{ text: "Hi" }] } };
  const answer = await client.sendMessage(SendMessageRequest.fromJSON(request));
  assert.ok("parts" in answer);
  assert.deepEqual(answer.parts[0]?.content, { $case: "text", value: "You said: Hi" });
}

const AGENTS: readonly (readonly [about: string, manifests: () => Manifest[], backend: string, path: string])[] = [
  ["the page", () => read(EXAMPLES.get("An agent")), "agent", "/team"],
  ["examples/a2a", () => read(readFileSync(join(ROOT, "examples/a2a/gateway.yaml"), "utf8")), "echo", "/echo"],
];

for (const [about, manifestsOf, backend, path] of AGENTS)
  prove([], `the official client talks to the agent of ${about}`, async (context) => {
    const port = await startAgent(context);
    const manifests = manifestsOf();
    Object.assign(find(manifests, "GwBackend", backend).spec, { a2a: { host: "127.0.0.1", port } });
    const gateway = await startGateway(context, documents(...print(manifests)));
    await talk(`${gateway.url()}${path}/`);
  });

prove([], "the official client talks to the Service of the page", async (context) => {
  const port = await startAgent(context);
  const slice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: agents-1, labels: {kubernetes.io/service-name: agents}}
addressType: IPv4
ports: [{name: a2a, port: ${port}}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;
  const manifests = withFirst(read(EXAMPLES.get("A Service")));
  const gateway = await startGateway(context, documents(...print(manifests), slice));
  await talk(gateway.url());
});

prove([], "the hosted agent of the page is called with a signature", async (context) => {
  const pair = createSelfSigned(RUNTIME_HOST, `DNS:${RUNTIME_HOST}`);
  const runtime = await startAgentRuntime(context, { pair });
  const places = { [`${RUNTIME_HOST}:443`]: `127.0.0.1:${runtime.port}` };
  const proxy = await startForwardProxy(context, { places });
  const manifests = withFirst(read(EXAMPLES.get("An agent hosted by Bedrock AgentCore")));
  find(manifests, "Secret", "aws-keys").stringData["secretKey"] = RUNTIME_KEYS.secretAccessKey;
  Object.assign(find(manifests, "GwBackend", "agent").spec.policies ?? {}, {
    tunnel: { backendRef: { group: "gwproxy.dev", kind: "GwBackend", name: "proxy" } },
    tls: { caCertificateRefs: [{ name: "authority" }] },
  });
  const authority = pemObject("ConfigMap", "authority", { "ca.crt": pair.certificate });
  const gateway = await startGateway(
    context,
    documents(...print(manifests), staticBackend("proxy", proxy.port), authority),
  );
  const answer = await call(`${gateway.url()}/team/any`, { method: "POST", body: "{}" });
  assert.deepEqual([answer.status, runtime.seen[0]?.url], [200, `${RUNTIME_PATH}?qualifier=prod`], answer.body);
});
