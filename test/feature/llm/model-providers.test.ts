/** The providers of GwModels: the addresses that their settings lead to, their credentials, TLS and headers. */
import assert from "node:assert/strict";
import type { ServerOptions } from "node:https";
import { FOREIGN, namesForeign } from "../../support/fixtures/foreign-secret.ts";
import { documents, pemObject, startGateway, staticBackend, type TestGateway } from "../../support/gateway/gateway.ts";
import {
  gwModel,
  model,
  MODEL_GATEWAY,
  serveModels,
  service,
  serviceApart,
  virtual,
} from "../../support/gateway/models.ts";
import { call, parseJson, type Answer } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { startForwardProxy } from "../../support/servers/forward-proxy.ts";
import { startNamedVendors } from "../../support/servers/llm/named-vendors.ts";
import { createSelfSigned, startTlsUpstream, type Handshake } from "../../support/servers/tls-upstream.ts";

const SPEC = "GwModel spec";
const fields = (block: string, ...names: readonly string[]): string[] =>
  names.map((name) => `${SPEC}.${block}.${name}`);

interface Vendor {
  /** What clients ask for. */
  readonly name: string;
  /** Members of spec in flow YAML. */
  readonly spec: string;
  /** Host and path at which the vendor is called. */
  readonly at: string;
}

const AZURE = "acme.openai.azure.com";
const VENDORS: readonly Vendor[] = [
  {
    name: "gpt-dated",
    spec: 'provider: llmd, llmd: {resourceName: acme, resourceType: ResA, apiVersion: "2024-10-21"}',
    at: `${AZURE} /openai/deployments/gpt-dated/chat/completions?api-version=2024-10-21`,
  },
  {
    name: "gpt-lab",
    spec: "provider: llmd, llmd: {resourceName: acme, resourceType: ResB, projectName: lab}",
    at: "acme-resource.services.ai.azure.com /api/projects/lab/openai/v1/chat/completions",
  },
  {
    name: "gemini-2.5-flash",
    spec: "provider: llmg, llmg: {projectId: p-1, region: europe-west4}",
    at:
      "europe-west4-aiplatform.googleapis.com " +
      "/v1/projects/p-1/locations/europe-west4/publishers/google/models/gemini-2.5-flash:generateContent",
  },
  {
    name: "amazon.nova-pro-v1",
    spec: 'provider: llmh, llmh: {region: eu-west-1, guardrail: {identifier: gr1, version: "2"}}',
    at: "bedrock-runtime.eu-west-1.amazonaws.com /model/amazon.nova-pro-v1/converse",
  },
  {
    name: "qwen.qwen3",
    spec: "provider: llmh, llmh: {region: eu-west-1, endpointPreference: AltOnly}",
    at: "bedrock-mantle.eu-west-1.api.aws /v1/chat/completions",
  },
];

function chat(gateway: { url(): string }, name: string, path = "/v1/chat/completions"): Promise<Answer> {
  return call(gateway.url() + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: name, messages: [{ role: "user", content: "hi" }] }),
  });
}

/** @param policies members of `policies` beside TLS and the tunnel, in flow YAML */
async function serveVendors(context: ProofContext, vendors: readonly Vendor[], policies: string, ...more: string[]) {
  const names = [...new Set(vendors.map(({ at }) => at.split(" ")[0] ?? ""))];
  const { seen, proxy, authority } = await startNamedVendors(context, names);
  const tunnel = `tunnel: {url: "http://127.0.0.1:${proxy.port}"}, tls: {caCertificateRefs: [{name: vendors}]}`;
  const models = vendors.map(({ name, spec }, at) =>
    gwModel(
      `m-${at}`,
      `parentRefs: [{name: gw}], match: {model: "${name}"}, ${spec}, policies: {${tunnel}, ${policies}}`,
    ),
  );
  const trusted = pemObject("ConfigMap", "vendors", { "ca.crt": authority });
  return { seen, gateway: await startGateway(context, documents(MODEL_GATEWAY, trusted, ...models, ...more)) };
}

prove(
  [
    ...fields("llmd", "resourceName", "resourceType", "apiVersion", "projectName"),
    ...fields("llmg", "projectId", "region"),
    ...fields("llmh", "region", "endpointPreference", "guardrail.identifier", "guardrail.version"),
    `${SPEC}.policies.tls.caCertificateRefs[].name`,
  ],
  "the settings of a model's provider tell where it is called",
  async (context) => {
    const { seen, gateway } = await serveVendors(context, VENDORS, "auth: {key: the-key}");
    for (const { name } of VENDORS) await chat(gateway, name);
    assert.deepEqual(
      seen.map(({ at: [, path, host] }) => `${host} ${path}`),
      VENDORS.map(({ at }) => at),
    );
    assert.match(String(seen[3]?.body), /"guardrailIdentifier":"gr1","guardrailVersion":"2"/);
  },
);

prove(
  fields("policies.auth.cloudA", "secretRef.name", "region", "serviceName"),
  "requests of a model are signed with the keys of a Secret",
  async (context) => {
    const secret = `
apiVersion: v1
kind: Secret
metadata: {name: aws}
stringData: {accessKey: AKIDEXAMPLE, secretKey: hidden}
`;
    const cloudA = "auth: {cloudA: {secretRef: {name: aws}, region: eu-central-1, serviceName: own}}";
    const { seen, gateway } = await serveVendors(context, VENDORS.slice(3, 4), cloudA, secret);
    await chat(gateway, "amazon.nova-pro-v1");
    assert.match(
      String(seen[0]?.headers["authorization"]),
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-central-1\/own\/aws4_request,/,
    );
  },
);

prove(
  fields("custom", "formats[].type", "formats[].path", "providerOverride"),
  "a provider of one's own speaks the formats that it lists, at their paths",
  async (context) => {
    const { ask, gateway, one } = await serveModels(
      context,
      gwModel(
        "own",
        "parentRefs: [{name: gw}], provider: custom, custom: {providerOverride: in-house, formats: [{type: Messages, path: /own/messages}], backendRef: {name: one, port: 80}}",
      ),
    );
    await ask("own", { path: "/v1/messages", body: { max_tokens: 3 } });
    const sent = one.seen.at(-1);
    assert.equal(sent?.url, "/own/messages");
    assert.equal((parseJson(sent.body) as { max_tokens?: number }).max_tokens, 3, "the body is not translated");
    const { body } = await call(`${gateway.url()}/v1/models/own`);
    assert.equal((parseJson(body) as { owned_by: string }).owned_by, "in-house");
  },
);

prove(
  [
    ...fields("policies.auth.secretRef", "name", "key"),
    ...fields("policies.auth.location", "header.name", "header.prefix", "queryParameter.name", "cookie.name"),
    ...fields("policies.headers.response", "add[].name", "add[].value", "remove[]"),
  ],
  "the credential of a model comes from a Secret and goes where it is configured",
  async (context) => {
    const secret = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {Authorization: usual, other: chosen}
`;
    const policies = (location: string): string =>
      `policies: {auth: {secretRef: {kind: Secret, name: keys, key: other}, location: ${location}}, headers: {response: {add: [{name: x-more, value: added}], remove: [x-upstream]}}}`;
    const { ask } = await serveModels(
      context,
      secret,
      model("header", { more: policies("{header: {name: x-key, prefix: 'Token '}}") }),
      model("query", { more: policies("{queryParameter: {name: key}}") }),
      model("cookie", { more: policies("{cookie: {name: key}}") }),
    );
    const answer = await ask("header");
    assert.deepEqual([answer.headers["x-more"], answer.headers["x-upstream"]], ["added", undefined]);
    assert.equal(echoed(answer.body).headers["x-key"], "Token chosen");
    assert.equal(echoed((await ask("query")).body).url, "/v1/chat/completions?key=chosen");
    assert.equal(echoed((await ask("cookie")).body).headers["cookie"], "key=chosen");
  },
);

const TLS = `${SPEC}.policies.tls`;

/** Serves models whose service speaks TLS, one for each block of `tls`. @returns the handshake, or the status */
async function serveTls(
  context: ProofContext,
  names: readonly string[],
  blocks: Readonly<Record<string, string>>,
  { server = {}, objects = [] }: { readonly server?: ServerOptions; readonly objects?: readonly string[] } = {},
): Promise<{ readonly gateway: TestGateway; ask(name: string): Promise<Handshake | number> }> {
  const upstream = await startTlsUpstream(context, names, server);
  const models = Object.entries(blocks).map(([name, tls]) =>
    model(name, { to: "far", more: `policies: {tls: ${tls}}` }),
  );
  const gateway = await startGateway(
    context,
    documents(
      MODEL_GATEWAY,
      pemObject("ConfigMap", "trusted", { "ca.crt": upstream.authority }),
      pemObject("Secret", "bundle", { "vendor.pem": upstream.authority }),
      service("far", upstream.port),
      ...objects,
      ...models,
    ),
  );
  return {
    gateway,
    async ask(name) {
      const { status, body } = await chat(gateway, name);
      return status === 200 ? (parseJson(body) as Handshake) : status;
    },
  };
}

prove(
  [
    `${TLS}.caCertificateRefs[].kind`,
    `${TLS}.caCertificateRefs[].key`,
    `${TLS}.sni`,
    `${TLS}.insecureSkipVerify`,
    `${TLS}.verifySubjectAltNames[]`,
  ],
  "the provider of a model is greeted and checked as its TLS settings say",
  async (context) => {
    const trust = "caCertificateRefs: [{kind: Secret, name: bundle, key: vendor.pem}]";
    const { ask } = await serveTls(context, ["inner.test"], {
      named: `{sni: inner.test, ${trust}}`,
      listed: `{verifySubjectAltNames: [x.test, inner.test], ${trust}}`,
      other: `{verifySubjectAltNames: [x.test], ${trust}}`,
      unchecked: "{insecureSkipVerify: All}",
      unknown: "{sni: inner.test}",
    });
    const named = await ask("named");
    assert.equal(typeof named === "number" ? named : named.serverName, "inner.test");
    for (const name of ["listed", "unchecked"]) assert.equal(typeof (await ask(name)), "object", name);
    for (const name of ["other", "unknown"]) assert.equal(await ask(name), 503, name);
  },
);

const TRUST = "sni: inner.test, caCertificateRefs: [{name: trusted}]";

prove(
  `${TLS}.mtlsCertificateRef[].name`,
  "the provider of a model that demands a client certificate sees the one of its settings",
  async (context) => {
    const client = createSelfSigned("gwproxy client");
    const server = { requestCert: true, rejectUnauthorized: true, ca: client.certificate };
    const secret = pemObject("Secret", "client", { "tls.crt": client.certificate, "tls.key": client.key });
    const blocks = { shown: `{mtlsCertificateRef: [{name: client}], ${TRUST}}`, missing: `{${TRUST}}` };
    const { ask } = await serveTls(context, ["inner.test"], blocks, { server, objects: [secret] });
    const shown = await ask("shown");
    assert.equal(typeof shown === "number" ? shown : shown.client, "gwproxy client");
    assert.equal(await ask("missing"), 503);
  },
);

prove(
  ["group", "kind"].map((name) => `${TLS}.mtlsCertificateRef[].${name}`),
  "a Secret does not stand in for a model's client certificate of a kind that nobody knows",
  async (context) => {
    const client = createSelfSigned("gwproxy client");
    const secret = pemObject("Secret", "client", { "tls.crt": client.certificate, "tls.key": client.key });
    const blocks = { foreign: `{mtlsCertificateRef: [{name: client, ${FOREIGN}}], ${TRUST}}`, sound: `{${TRUST}}` };
    const { ask, gateway } = await serveTls(context, ["inner.test"], blocks, { objects: [secret] });
    assert.equal(await ask("foreign"), 404, "it is not offered");
    assert.equal(typeof (await ask("sound")), "object");
    namesForeign(gateway);
  },
);

prove(
  [`${TLS}.alpnProtocols[]`, `${TLS}.keyExchangeGroups[]`],
  "the provider of a model is offered the protocols and groups of its TLS settings",
  async (context) => {
    const blocks = {
      listed: `{alpnProtocols: [custom, http/1.1], ${TRUST}}`,
      shared: `{keyExchangeGroups: [X25519, P-384], ${TRUST}}`,
      apart: `{keyExchangeGroups: [X25519, P-256], ${TRUST}}`,
    };
    const { ask } = await serveTls(context, ["inner.test"], blocks, { server: { ecdhCurve: "P-384" } });
    const listed = await ask("listed");
    assert.deepEqual(typeof listed === "number" ? listed : listed.protocols, ["custom", "http/1.1"]);
    assert.equal(typeof (await ask("shared")), "object");
    assert.equal(await ask("apart"), 503);
  },
);

const TUNNEL = `${SPEC}.policies.tunnel.backendRef`;

prove(
  [
    ...["group", "kind", "name", "namespace", "port"].map((name) => `${TUNNEL}.${name}`),
    `${SPEC}.custom.backendRef.port`,
  ],
  "a model is reached through the proxy that its block names",
  async (context) => {
    const upstream = await startEcho(context, { tag: "vendor" });
    const proxy = await startForwardProxy(context);
    const through = (ref: string): string => `policies: {tunnel: {backendRef: ${ref}}}`;
    const { ask } = await serveModels(
      context,
      serviceApart("default", "vendor", upstream.port),
      serviceApart("egress", "proxies", proxy.port),
      staticBackend("proxy", proxy.port),
      model("backend", { to: "vendor", more: through("{group: gwproxy.dev, kind: GwBackend, name: proxy}") }),
      model("service", { to: "vendor", more: through("{name: proxies, namespace: egress, port: 80}") }),
    );
    for (const name of ["backend", "service"]) assert.equal((await ask(name)).headers["x-upstream"], "vendor", name);
    const asked = `POST http://127.0.0.1:${upstream.port}/v1/chat/completions`;
    assert.deepEqual(proxy.asked, [asked, asked]);
  },
);

const CALLOUT = `${SPEC}.virtualModel.callout`;

prove(
  [
    ...["group", "kind", "namespace", "port"].map((name) => `${CALLOUT}.backendRef.${name}`),
    `${CALLOUT}.cache.maxEntries`,
  ],
  "answers of a service that chooses models are kept up to a number",
  async (context) => {
    const chooser = await startEcho(context);
    const cache = `cache: {key: ["llmRequest.user"], ttl: 1h, maxEntries: 1}`;
    const callout = (to: string, more: string): string =>
      `callout: {backendRef: ${to}, transformation: {model: "'m'"}${more}}`;
    const { asked } = await serveModels(
      context,
      staticBackend("chooser", chooser.port),
      serviceApart("apart", "ports", chooser.port),
      model("m"),
      virtual("auto", callout("{group: gwproxy.dev, kind: GwBackend, name: chooser, port: 80}", `, ${cache}`)),
      virtual("by-port", callout("{name: ports, namespace: apart, port: 80}", "")),
    );
    for (const user of ["a", "a", "b", "a"]) assert.equal(await asked("auto", { body: { user } }), "one m");
    assert.equal(chooser.seen.length, 3, "the entry of b has taken the place of the one of a");
    assert.equal(await asked("by-port"), "one m");
  },
);
