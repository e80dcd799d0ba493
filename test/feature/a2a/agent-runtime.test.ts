/** Agents that are hosted by Bedrock AgentCore: addressed by their ARN, signed, behind TLS of the test's own authority. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  pemObject,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { keySecret } from "../../support/gateway/bedrock.ts";
import { call, parseJson } from "../../support/clients/http.ts";
import { rawClient } from "../../support/gateway/data-plane.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { CLIENT, only, startTraced } from "../../support/gateway/traced.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import {
  RUNTIME_ARN,
  RUNTIME_HOST,
  RUNTIME_KEYS,
  RUNTIME_PATH,
  startAgentRuntime,
  type AgentRuntimeServer,
} from "../../support/servers/agent-runtime.ts";
import { startForwardProxy } from "../../support/servers/forward-proxy.ts";
import { createSelfSigned } from "../../support/servers/tls-upstream.ts";

const PAIR = createSelfSigned(RUNTIME_HOST, `DNS:${RUNTIME_HOST}`);
const CARD = "/.well-known/agent-card.json";
const USER = "x-amzn-bedrock-agentcore-runtime-user-id";
const SESSION = "x-amzn-bedrock-agentcore-runtime-session-id";

interface Served {
  readonly gateway: TestGateway;
  readonly runtime: AgentRuntimeServer;
  readonly url: string;
}

interface Parts {
  /** Members of `agentRuntime`, as flow YAML. */
  readonly runtime?: string;
  /** Members of `policies`, as flow YAML. */
  readonly policies?: string;
  readonly more?: readonly string[];
  readonly telemetry?: Parameters<typeof startGateway>[2];
}

interface Prepared {
  readonly runtime: AgentRuntimeServer;
  readonly manifests: readonly string[];
}

/** Starts a runtime, and returns the manifests of a gateway in front of it. */
async function prepare(context: ProofContext, parts: Omit<Parts, "telemetry"> = {}): Promise<Prepared> {
  const { runtime: members = `agentRuntimeArn: "${RUNTIME_ARN}"`, more = [] } = parts;
  const { policies = "auth: {cloudA: {secretRef: {name: aws}}}" } = parts;
  const runtime = await startAgentRuntime(context, { pair: PAIR });
  const places = { [`${RUNTIME_HOST}:443`]: `127.0.0.1:${runtime.port}` };
  const proxy = await startForwardProxy(context, { places });
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: runtime}
spec:
  cloudA: {agentRuntime: {${members}}}
  policies:
    tunnel: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: proxy}}
    tls: {caCertificateRefs: [{name: authority}]}
    ${policies}
`;
  const manifests = [
    GATEWAY,
    keySecret("aws", RUNTIME_KEYS),
    pemObject("ConfigMap", "authority", { "ca.crt": PAIR.certificate }),
    staticBackend("proxy", proxy.port),
    backend,
    route("runtime", "runtime"),
    ...more,
  ];
  return { runtime, manifests };
}

async function serve(context: ProofContext, parts: Parts = {}): Promise<Served> {
  const { runtime, manifests } = await prepare(context, parts);
  const gateway = await startGateway(context, documents(...manifests), parts.telemetry);
  return { gateway, runtime, url: gateway.url() };
}

const FIELD = "GwBackend spec.cloudA.agentRuntime";

prove(
  [`${FIELD}.agentRuntimeArn`, `${FIELD}.qualifier`],
  "a request goes to the invocations of the runtime with its qualifier, whatever its own path is, and is signed",
  async (context) => {
    const { url, runtime } = await serve(context, {
      runtime: `agentRuntimeArn: "${RUNTIME_ARN}", qualifier: "a b/c!'()*~é"`,
    });
    const headers = {
      "content-type": "application/json",
      accept: "text/event-stream",
      authorization: "Bearer of-the-client",
      "x-amz-date": "20000101T000000Z",
      "x-amz-security-token": "of-the-client",
      "x-amz-content-sha256": "of-the-client",
      "mcp-session-id": "s",
      [SESSION]: "session-of-the-client",
    };
    const answer = await call(`${url}/any?x=1`, { method: "POST", headers, body: '{"prompt":"hi"}' });
    assert.deepEqual([answer.status, answer.body], [200, '{"ok":true}'], answer.body);
    const [seen] = runtime.seen;
    assert.ok(seen);
    assert.deepEqual(
      [seen.method, seen.url, seen.body],
      ["POST", `${RUNTIME_PATH}?qualifier=a%20b%2Fc%21%27%28%29%2A~%C3%A9`, '{"prompt":"hi"}'],
    );
    const names = ["accept", "mcp-session-id", SESSION, "x-amz-security-token"];
    assert.deepEqual(
      names.map((name) => seen.headers[name]),
      ["text/event-stream", "s", "session-of-the-client", undefined],
    );
    assert.match(String(seen.headers["authorization"]), new RegExp(`SignedHeaders=[^,]*${SESSION}`));
    assert.equal(
      seen.headers["x-amz-content-sha256"],
      hash("sha256", seen.body),
      "a digest of our own, not the client's",
    );
  },
);

prove(
  `${FIELD}.agentRuntimeArn`,
  "a request without a qualifier has no query, and no body is signed as none",
  async (context) => {
    const { url, runtime } = await serve(context);
    assert.equal((await call(`${url}/?qualifier=of-the-client`)).status, 200);
    assert.deepEqual([runtime.seen[0]?.method, runtime.seen[0]?.url], ["GET", RUNTIME_PATH]);
  },
);

test("each attempt is signed anew", async (t) => {
  const again = routePolicy("again", "runtime", "  traffic: {retry: {attempts: 1, codes: [503]}}");
  const { url, runtime } = await serve(contextOf(t), { more: [again] });
  runtime.respond = (_, response) => void response.writeHead(runtime.seen.length === 1 ? 503 : 200).end();
  assert.equal((await call(url, { method: "POST", body: "x" })).status, 200);
  assert.deepEqual(
    runtime.seen.map(({ headers, body }) => [headers["x-retry-attempt"], body]),
    [
      [undefined, "x"],
      ["1", "x"],
    ],
  );
});

test("the user that a request acts for is that of a policy, never that of a client", async (t) => {
  const policy = routePolicy(
    "user",
    "runtime",
    `  traffic: {headerModifiers: {request: {set: [{name: ${USER}, value: u}]}}}`,
  );
  const plain = await serve(contextOf(t));
  await call(plain.url, { headers: { [USER]: "admin" } });
  assert.equal(plain.runtime.seen[0]?.headers[USER], undefined);
  const named = await serve(contextOf(t), { more: [policy] });
  await call(named.url, { headers: { [USER]: "u" } });
  assert.equal(named.runtime.seen[0]?.headers[USER], "u");
});

test("a body above the limit cannot be signed and is refused", async (t) => {
  const small = gatewayPolicy("small", "  frontend: {http: {maxBufferSize: 64}}");
  const { url, runtime } = await serve(contextOf(t), { more: [small] });
  const answer = await call(url, { method: "POST", body: "x".repeat(65) });
  assert.deepEqual([answer.status, answer.body], [413, "request body too large to sign"]);
  assert.deepEqual(runtime.seen, []);
});

test("a stream passes as it comes", async (t) => {
  const { url, runtime } = await serve(contextOf(t));
  let end = (): void => undefined;
  runtime.respond = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write("data: 1\n\n");
    end = () => void response.end("data: 2\n\n");
  };
  const response = await fetch(url, { method: "POST", body: "{}" });
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    // The runtime ends its stream only when the client has its beginning.
    end();
  }
  assert.equal(text, "data: 1\n\ndata: 2\n\n");
});

test("the card of a hosted agent is asked for below the invocations and pointed at the gateway", async (t) => {
  const { url, runtime } = await serve(contextOf(t));
  // The service spells the ARN in its own way.
  const own = RUNTIME_PATH.replaceAll("%2D", "-");
  runtime.respond = (_, response) =>
    void response.end(JSON.stringify({ name: "a", url: `https://${RUNTIME_HOST}${own}/`, skills: [] }));
  for (const path of [`/team${CARD}`, "/team/.well-known/agent.json"]) {
    const { body } = await call(url + path);
    assert.deepEqual(parseJson(body), { name: "a", url: `${url}/team/`, skills: [] });
  }
  assert.deepEqual(
    runtime.seen.map((seen) => seen.url),
    [RUNTIME_PATH + CARD, RUNTIME_PATH + CARD],
  );
});

for (const [method, listed] of [
  ["GetExtendedAgentCard", (url: string) => ({ supportedInterfaces: [{ url, protocolBinding: "JSONRPC" }] })],
  ["agent/getAuthenticatedExtendedCard", (url: string) => ({ url, skills: [] })],
] as const)
  test(`the extended card of a hosted agent is pointed at the gateway: ${method}`, async (t) => {
    const { url, runtime } = await serve(contextOf(t));
    const own = RUNTIME_PATH.replaceAll("%2D", "-");
    const answer = (base: string): object => ({ jsonrpc: "2.0", id: 1, result: { name: "a", ...listed(base) } });
    runtime.respond = ({ body }, response) => {
      // What is no call for a card passes as it is, though it holds the URL.
      const base = body.includes(method) ? `https://${RUNTIME_HOST}${own}/` : "https://as.it.is/";
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer(base)));
    };
    const ask = async (name: string): Promise<unknown> => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: name });
      const headers = { "content-type": "application/json" };
      return parseJson((await call(`${url}/team/`, { method: "POST", headers, body })).body);
    };
    assert.deepEqual(await ask(method), answer(`${url}/team/`));
    assert.deepEqual(await ask("message/send"), answer("https://as.it.is/"));
    assert.deepEqual(
      runtime.seen.map((seen) => seen.url),
      [RUNTIME_PATH, RUNTIME_PATH],
    );
  });

test("the span of a call names the region of the runtime", async (t) => {
  const context = contextOf(t);
  const { manifests } = await prepare(context);
  const { url, spans } = await startTraced(context, { port: 0, base: manifests });
  assert.equal((await call(url)).status, 200);
  const { name, attributes } = only(await spans(), ({ kind }) => kind === CLIENT);
  assert.deepEqual([name, attributes["cloud.region"]], [`GET ${RUNTIME_HOST}:443`, "eu-west-1"]);
});

test("the log names the type of the backend and the address that was called", async (t) => {
  const context = contextOf(t);
  const lines = keepLines(context);
  const log = gatewayPolicy(
    "log",
    "  frontend: {accessLog: {attributes: {add: [{name: type, expression: backend.type}]}}}",
  );
  const { url } = await serve(context, { more: [log], telemetry: { telemetry: { accessLog: lines.accessLog } } });
  await call(url);
  const { type, endpoint } = await lines.nextFields();
  assert.deepEqual([type, endpoint], ["agentRuntime", `${RUNTIME_HOST}:443`]);
});

prove(
  "GwBackend spec.policies.auth.key",
  "a credential of another kind takes the place of signatures",
  async (context) => {
    const runtime = await serve(context, { policies: "auth: {key: secret}" });
    const answer = await call(runtime.url);
    assert.deepEqual([answer.status, answer.body], [403, "no signature"]);
  },
);

test("keys of the environment sign where the configuration has none", async (t) => {
  const before = { ...process.env };
  t.after(() => {
    process.env = before;
  });
  process.env["AWS_ACCESS_KEY_ID"] = RUNTIME_KEYS.accessKeyId;
  process.env["AWS_SECRET_ACCESS_KEY"] = RUNTIME_KEYS.secretAccessKey;
  // They go only to hosts that the operator lists where, as here, the author of the backend chooses whom it trusts.
  process.env["GWPROXY_AMBIENT_IDENTITY_HOSTS"] = "*";
  const { url } = await serve(contextOf(t), { policies: "" });
  const answer = await call(url);
  assert.deepEqual([answer.status, answer.body], [200, '{"ok":true}']);
});

test("CONNECT to a runtime is refused", async (t) => {
  const frontend = gatewayPolicy("connect", "  frontend: {connect: {mode: Route}}");
  const { url, runtime } = await serve(contextOf(t), { more: [frontend] });
  const client = rawClient(Number(new URL(url).port), "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
  t.after(() => void client.socket.destroy());
  assert.match(await client.closed(), /^HTTP\/1\.1 500 [\s\S]*invalid backend type/);
  assert.deepEqual(runtime.seen, []);
});
