/** What clients and servers of MCP must not send, through sockets: each gets its answer, and the session lives on. */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { call, parseJson, type Answer } from "../../support/clients/http.ts";
import { INITIALIZE, MCP_HEADERS, post } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, gatewayPolicy, route, startGateway } from "../../support/gateway/gateway.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { BATCHES, DEEP, MISBEHAVIOURS, sendText, untilClosed } from "../../support/servers/mcp-misbehaviours.ts";

interface Opened {
  readonly url: string;
  /** Headers of the session. */
  readonly session: Readonly<Record<string, string>>;
  /** Paths that reached the server. */
  readonly seen: readonly string[];
  /** Their bodies. */
  readonly bodies: readonly string[];
}

for (const version of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
  test(`a server that misbehaves in ${version}: the call fails, and its answer tells nothing of the server`, async (t) => {
    const { url, session, seen } = await open(t, version);
    for (const name of Object.keys(MISBEHAVIOURS))
      await (version === "2025-03-26" && BATCHES.has(name) ? expectBoth(name) : expectFailure(name));
    await untilClosed();

    async function expectBoth(name: string): Promise<void> {
      const { body } = await post(url, { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name } }, session);
      const messages = [...body.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => parseJson(data) as JsonRpcResponse);
      assert.deepEqual(
        messages.map(({ id, method }) => id ?? method),
        ["notifications/message", 7],
        name,
      );
    }

    async function expectFailure(name: string): Promise<void> {
      const answer = await post(url, { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name } }, session);
      const { id, error } = responseIn(answer);
      assert.deepEqual([id, error?.code], [7, -32_603], `${name}: ${answer.body}`);
      assert.doesNotMatch(answer.body, LEAKED);
      assert.deepEqual(
        seen.filter((path) => path !== "/mcp"),
        [],
      );
      await expectAlive(url, session);
    }
  });

test("a server that misbehaves on its stream, or when a session begins: the client learns nothing of it", async (t) => {
  const { url, session } = await open(t);
  for (const name of Object.keys(MISBEHAVIOURS)) {
    const headers = { ...MCP_HEADERS, ...session, "x-misbehaves": name };
    const leave = new AbortController();
    const stream = await fetch(url, { headers, signal: leave.signal });
    assert.ok([200, 500].includes(stream.status), `${name}: ${stream.status}`);
    // A stream that breaks off is opened again, so that of the client stays; it has a comment first.
    const first = await stream.body?.getReader().read();
    assert.doesNotMatch(Buffer.from(first?.value ?? []).toString(), LEAKED);
    leave.abort();
    const begun = await post(url, INITIALIZE, { "x-misbehaves": name });
    assert.deepEqual([responseIn(begun).error?.code, begun.headers["mcp-session-id"]], [-32_603, undefined], name);
    assert.doesNotMatch(begun.body, LEAKED);
    await expectAlive(url, session);
  }
  await untilClosed();
});

/** Texts of the server that no client may read. */
const LEAKED = /elsewhere|hello|127\.0\.0\.1|xxx/;
const LONG_ID = `"${"a".repeat(1_100)}"`;
const REFUSED: readonly (readonly [what: string, body: string, status: number, code: number, id?: unknown])[] = [
  ["no JSON", "{", 400, -32_700, null],
  ["nothing", "", 400, -32_700, null],
  ["no message", "7", 400, -32_600, null],
  ["another version of JSON-RPC", '{"jsonrpc":"1.0","id":3,"method":"ping"}', 400, -32_600, 3],
  ["no version of JSON-RPC", '{"id":3,"method":"ping"}', 400, -32_600, 3],
  ["an id of another type", '{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32_600, null],
  ["a fraction as id", '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32_600, null],
  ["a long id", `{"jsonrpc":"2.0","id":${LONG_ID},"method":"ping"}`, 400, -32_600, null],
  ["a long integer as id", `{"jsonrpc":"2.0","id":${"1".repeat(1_100)},"method":"ping"}`, 400, -32_600, null],
  ["null as id", '{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32_600, null],
  ["two messages", '{"jsonrpc":"2.0","method":"x"}{"jsonrpc":"2.0","method":"x"}', 400, -32_700, null],
  ["a byte order mark", '\ufeff{"jsonrpc":"2.0","id":3,"method":"ping"}', 400, -32_700, null],
  ["two methods", '{"jsonrpc":"2.0","id":3,"method":"ping","method":"tools/list"}', 400, -32_600, 3],
  ["two methods, one escaped", '{"jsonrpc":"2.0","id":3,"method":"ping","m\\u0065thod":"tools/list"}', 400, -32_600, 3],
  ["a method in two cases", '{"jsonrpc":"2.0","id":3,"Method":"tools/list","method":"ping"}', 400, -32_600, 3],
  ["two ids", '{"jsonrpc":"2.0","id":4,"id":3,"method":"ping"}', 400, -32_600, 3],
  ["two params", '{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{},"params":{"cursor":"x"}}', 400, -32_600, 3],
  ["a second initialize of two", `${INITIALIZE.slice(0, -1)},"method":"initialize"}`, 400, -32_600, 1],
  ["an answer with two ids", '{"jsonrpc":"2.0","id":3,"id":4,"result":{}}', 400, -32_600, null],
  ["an answer that is none", '{"jsonrpc":"2.0","id":3,"result":{},"error":{}}', 400, -32_600, 3],
  ["an empty batch", "[]", 400, -32_600, null],
  ["a batch of a number", "[7]", 400, -32_600, null],
  ["a batch of a batch", '[[{"jsonrpc":"2.0","id":3,"method":"ping"}]]', 400, -32_600, null],
  [
    "too long a batch",
    `[${Array.from({ length: 101 }, () => '{"jsonrpc":"2.0","method":"x"}').join()}]`,
    400,
    -32_600,
    null,
  ],
  ["a batch in a version without batches", '[{"jsonrpc":"2.0","id":3,"method":"ping"}]', 400, -32_600, null],
  ["too deep a message", `{"jsonrpc":"2.0","id":3,"method":"ping","params":{"a":${DEEP}}}`, 400, -32_600, null],
  ["params that are a list", '{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', 400, -32_600, 3],
  ["an unknown method", '{"jsonrpc":"2.0","id":3,"method":"constructor"}', 200, -32_601, 3],
  ["a method of another era", '{"jsonrpc":"2.0","id":3,"method":"server/discover"}', 200, -32_601, 3],
  ["a tool that no server has", '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":7}}', 200, -32_602, 3],
  [
    "too large a message",
    `{"jsonrpc":"2.0","id":3,"method":"ping","params":{"a":"${"x".repeat(70_000)}"}}`,
    413,
    -32_600,
    null,
  ],
];
/** What versions answer otherwise: batches are of 2025-03-26 only. */
const OTHERWISE: Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>> = {
  "2025-03-26": { "a batch in a version without batches": [200, undefined, 3] },
};

for (const version of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
  test(`messages that are refused in a session of ${version}, which lives on`, async (t) => {
    const { url, session } = await open(t, version);
    for (const [what, body, ...usual] of REFUSED) {
      const answer = await post(url, body, session);
      const { error, id } = responseIn(answer);
      assert.deepEqual(
        [answer.status, error?.code, id],
        OTHERWISE[version]?.[what] ?? usual,
        `${what}: ${answer.body}`,
      );
      await expectAlive(url, session);
    }
    const notUtf8 = Buffer.from('{"jsonrpc":"2.0","id":3,"method":"\u00e4"}', "latin1");
    const answer = await fetch(url, { method: "POST", headers: { ...MCP_HEADERS, ...session }, body: notUtf8 });
    assert.deepEqual([answer.status, responseIn({ body: await answer.text() }).error?.code], [400, -32_700]);
    await expectAlive(url, session);
  });

const PING_METHOD = '"method":"ping"';
const REQUEST_VERSION = "2026-07-28";
/** What 2026-07-28 answers otherwise: wrong params, and those without the version, are a bad request. */
const OF_REQUESTS: Readonly<Record<string, readonly unknown[]>> = {
  "two params": [400, -32_602, 3],
  "a second initialize of two": [400, -32_020, 1],
  "an unknown method": [400, -32_602, 3],
  "a method of another era": [400, -32_602, 3],
  "a tool that no server has": [400, -32_602, 3],
};

test("messages that are refused in 2026-07-28, after which requests are answered", async (t) => {
  const { url } = await open(t);
  const meta = {
    "io.modelcontextprotocol/protocolVersion": REQUEST_VERSION,
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const list = { jsonrpc: "2.0", id: 3, method: "tools/list", params: { _meta: meta } };
  const ask = (body: unknown, method: string, name = "7"): Promise<Answer> =>
    post(url, body, { "mcp-protocol-version": REQUEST_VERSION, "mcp-method": method, "mcp-name": name });
  for (const [what, text, ...usual] of REFUSED) {
    const body = text.replace(PING_METHOD, `"method":"tools/list","params":${JSON.stringify(list.params)}`);
    const [, method = "tools/list"] = /"method":"([a-z/]+)"/.exec(body) ?? [];
    const answer = await ask(body, method);
    const { error, id } = responseIn(answer);
    assert.deepEqual([answer.status, error?.code, id], OF_REQUESTS[what] ?? usual, `${what}: ${answer.body}`);
    assert.equal((await ask(list, "tools/list")).status, 200, what);
  }
  for (const name of Object.keys(MISBEHAVIOURS)) {
    const params = { name, _meta: meta };
    const answer = await ask({ jsonrpc: "2.0", id: 7, method: "tools/call", params }, "tools/call", name);
    const { id, error } = responseIn(answer);
    assert.deepEqual([id, error?.code], [7, -32_603], `${name}: ${answer.body}`);
    assert.doesNotMatch(answer.body, LEAKED);
    assert.equal((await ask(list, "tools/list")).status, 200, name);
  }
  await untilClosed();
  for (const method of [
    "constructor",
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
  ]) {
    const answer = await ask({ ...list, method }, method);
    assert.deepEqual([answer.status, responseIn(answer).error?.code], [404, -32_601], method);
  }
});

const HEADERS: readonly (readonly [what: string, method: string, headers: Record<string, string>, status: number])[] = [
  ["one type to accept", "POST", { accept: "application/json" }, 406],
  ["another type of body", "POST", { "content-type": "text/plain" }, 415],
  ["an encoded body", "POST", { "content-encoding": "gzip" }, 415],
  ["an unknown version", "POST", { "mcp-protocol-version": "1999-01-01" }, 400],
  ["an unknown session", "POST", { "mcp-session-id": "made-up" }, 404],
  ["an event that was never sent", "POST", { "last-event-id": "%0d%0a/../1" }, 200],
  ["an empty session", "POST", { "mcp-session-id": "" }, 404],
  ["a stream without its type", "GET", { accept: "application/json" }, 406],
  ["a stream of an unknown session", "GET", { "mcp-session-id": "made-up" }, 404],
  ["the end of an unknown session", "DELETE", { "mcp-session-id": "made-up" }, 202],
  ["another method", "PUT", {}, 405],
];
test("requests with fields that are refused, after which the session lives on", async (t) => {
  const { url, session } = await open(t);
  for (const [what, method, headers, status] of HEADERS) {
    const merged = { ...MCP_HEADERS, ...session, ...headers };
    const answer = await call(url, { method, headers: merged, ...(method === "POST" ? { body: PING } : {}) });
    assert.equal(answer.status, status, `${what}: ${answer.body}`);
    await expectAlive(url, session);
  }
});

test("an unknown version is answered with those that need no session, but not where one is agreed on", async (t) => {
  const { url, session } = await open(t);
  const version = { "mcp-protocol-version": "1999-01-01" };
  const known = { code: -32_022, message: "Unsupported protocol version" };
  const listed = { ...known, data: { supported: ["2026-07-28"], requested: "1999-01-01" } };
  assert.deepEqual(responseIn(await post(url, PING, { ...session, ...version })).error, listed);
  assert.deepEqual(responseIn(await post(url, INITIALIZE, version)).error, known);
  const other = {
    ...JSON.parse(PING),
    params: { _meta: { "io.modelcontextprotocol/protocolVersion": "2025-06-18" } },
  } as object;
  const answer = await post(url, other, { ...session, "mcp-protocol-version": "2025-11-25" });
  assert.deepEqual([answer.status, responseIn(answer).error?.code], [400, -32_020]);
  await expectAlive(url, session);
});

const ORIGINS: readonly (readonly [what: string, path: string, headers: Record<string, string>, status: number])[] = [
  ["loopback names", "/mcp", { host: "localhost:1", origin: "http://127.0.0.1:5173" }, 200],
  ["a foreign Host on loopback", "/mcp", { host: "evil.test" }, 403],
  ["a foreign Origin on loopback", "/mcp", { origin: "http://evil.test" }, 403],
  ["a page without an origin", "/mcp", { origin: "null" }, 403],
  ["the Host that the route names", "/named", { host: "tools.test" }, 200],
  ["its own Origin", "/named", { host: "tools.test", origin: "http://tools.test" }, 200],
  ["the Origin of another port", "/named", { host: "tools.test", origin: "http://tools.test:81" }, 403],
  ["the Origin of another host", "/named", { host: "tools.test", origin: "https://evil.test" }, 403],
  ["an Origin that cors allows", "/named", { host: "tools.test", origin: "https://app.test" }, 200],
  ["a desktop client", "/named", { host: "tools.test", origin: "vscode-webview://1" }, 200],
  ["no origin on a named host", "/named", { host: "tools.test", origin: "null" }, 403],
];
test("requests of foreign pages are refused", async (t) => {
  const { url } = await open(t);
  for (const [what, path, headers, status] of ORIGINS) {
    const answer = await post(url.replace("/mcp", path), INITIALIZE, headers);
    assert.equal(answer.status, status, `${what}: ${answer.body}`);
  }
});

test("an answer to a question that nobody asked is dropped", async (t) => {
  const { url, session } = await open(t);
  for (const id of ["gw_one_n_7", 7])
    assert.equal((await post(url, { jsonrpc: "2.0", id, result: {} }, session)).status, 202);
  await expectAlive(url, session);
});

/** Ids, and params of a call, that parsers lose or take for something else. */
const KEPT: readonly (readonly [id: string, params: string])[] = [
  ["12345678901234567890", '{"name":"__proto__","arguments":{"__proto__":{"a":1},"n":12345678901234567890}}'],
  ['"__proto__"', '{"name":"constructor","arguments":{"constructor":null},"toString":1.0}'],
  [`"${"a".repeat(1_000)}"`, '{"arguments":{"a":1,"a":2,"name":"x"} , "name":"a\\u002fb"}'],
  ['"\ud83d\ude00\\ud800"', '{"name":"\ud83d\ude00","arguments":{"text":"\\ud800\\u0000"}}'],
  // Longer than the head of a request may be.
  ["7", `{"name":"${"n".repeat(40_000)}"}`],
  ["-1", `{"name":"","arguments":${"[".repeat(60)}${"]".repeat(60)}}`],
];

test("messages reach the server as they were sent, and answers have the ids of the requests", async (t) => {
  const { url, session, bodies } = await open(t);
  for (const [id, params] of KEPT) {
    const sent = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;
    const { body } = await post(url, sent, session);
    assert.equal(bodies.at(-1), sent);
    assert.equal(body, `{"jsonrpc":"2.0","id":${id},"result":{}}`);
  }
});

test("a batch of 2025-03-26 is answered request by request", async (t) => {
  const { url } = await open(t);
  const begun = await post(url, INITIALIZE.replace("2025-11-25", "2025-03-26"));
  const session = { "mcp-session-id": String(begun.headers["mcp-session-id"]) };
  const batch = `[${PING},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":4,"method":"unknown"}]`;
  const { body, status } = await post(url, batch, session);
  const messages = [...body.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => parseJson(data));
  assert.equal(status, 200);
  assert.deepEqual(messages, [
    { jsonrpc: "2.0", id: 3, result: {} },
    { jsonrpc: "2.0", id: 4, error: { code: -32_601, message: "Method not found" } },
  ]);
});

const PING = '{"jsonrpc":"2.0","id":3,"method":"ping"}';

async function expectAlive(url: string, session: Readonly<Record<string, string>>): Promise<void> {
  const answer = await post(url, PING, session);
  assert.deepEqual([answer.status, responseIn(answer)], [200, { jsonrpc: "2.0", id: 3, result: {} }], answer.body);
}

interface JsonRpcResponse {
  readonly id?: unknown;
  readonly method?: string;
  readonly error?: { readonly code: number };
}

/** Returns the message of an answer, which is JSON or the last event of a stream. */
function responseIn({ body }: Pick<Answer, "body">): JsonRpcResponse {
  const events = [...body.matchAll(/^data: (.*)$/gm)];
  return parseJson(events.at(-1)?.[1] ?? body) as JsonRpcResponse;
}

/** Opens a session with a server that misbehaves on demand, behind a gateway that holds 64 KiB of a message. */
async function open(context: Pick<ProofContext, "after">, version = "2025-11-25"): Promise<Opened> {
  const seen: string[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    seen.push(request.url ?? "");
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      bodies.push(text);
      answerMessage(text, response, String(request.headers["x-misbehaves"] ?? ""));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  // A TCP server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo;
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec:
  mcp:
    targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]
`;
  const named = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: named}
spec:
  parentRefs: [{name: gw}]
  hostnames: [tools.test]
  rules:
    - filters: [{type: CORS, cors: {allowOrigins: ["https://app.test"]}}]
      backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: tools}]
`;
  const limits = gatewayPolicy("limits", "  frontend: {http: {maxBufferSize: 64Ki}}");
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("tools", "tools"), named, limits));
  const url = `${gateway.url()}/mcp`;
  const begun = await post(url, INITIALIZE.replace("2025-11-25", version));
  assert.equal(begun.status, 200, begun.body);
  return { url, session: { "mcp-session-id": String(begun.headers["mcp-session-id"]) }, seen, bodies };
}

/** @param asked how to misbehave, whatever the message is */
function answerMessage(text: string, response: ServerResponse, asked: string): void {
  if (text === "" && asked === "") return void response.writeHead(405).end();
  const { id, method, params = {} } = JSON.parse(text || '{"id":7,"method":"GET"}') as Received;
  if (id === undefined || method === undefined) return void response.writeHead(202).end();
  if (method === "initialize") response.setHeader("mcp-session-id", "session-of-the-server");
  const name = method === "tools/call" ? (params.name ?? "") : asked;
  if (Object.hasOwn(MISBEHAVIOURS, name)) return MISBEHAVIOURS[name]?.(response, id);
  const { protocolVersion } = params;
  const result = JSON.stringify(method === "initialize" ? { ...INITIALIZED, protocolVersion } : {});
  // Parsing would lose some ids.
  const [, ownId = id] = /^\{"jsonrpc":"2\.0","id":(".*?[^\\]"|-?\d+),/.exec(text) ?? [];
  sendText(response, `{"jsonrpc":"2.0","id":${ownId},"result":${result}}`);
}

const INITIALIZED = { capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } };

interface Received {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly protocolVersion?: string };
}
