/** MCP 2026-07-28: requests without sessions, whose headers say what they are. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { call, parseJson } from "../../support/clients/http.ts";
import { MCP_HEADERS, post } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { startModernMcpServer } from "../../support/servers/modern-mcp-server.ts";

const VERSION = "2026-07-28";

async function start(context: Pick<ProofContext, "after">, port: number): Promise<string> {
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec:
  mcp:
    targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]
`;
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("tools", "tools")));
  return `${gateway.url()}/mcp`;
}

async function connect(context: Pick<ProofContext, "after">, url: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: { pin: VERSION } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  context.after(() => client.close());
  return client;
}

test("the official client and server speak 2026-07-28 through the gateway", async (t) => {
  const server = await startModernMcpServer(t);
  const client = await connect(t, await start(t, server.port));
  assert.equal(client.getServerVersion()?.name, "modern");
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(({ name }) => name).sort(), ["echo", "wait"]);
  const called = await client.callTool({ name: "echo", arguments: { text: "a" } });
  assert.deepEqual(called.content, [{ type: "text", text: "modern: a" }]);
  const last = server.seen.at(-1);
  assert.deepEqual(
    [last?.["mcp-method"], last?.["mcp-name"], last?.["mcp-protocol-version"]],
    ["tools/call", "echo", VERSION],
  );
  assert.equal(last?.["mcp-session-id"], undefined);
});

test("a client that closes its stream cancels the call", async (t) => {
  const server = await startModernMcpServer(t);
  const client = await connect(t, await start(t, server.port));
  const abort = new AbortController();
  const call = client.callTool({ name: "wait", arguments: {} }, { signal: abort.signal });
  while (server.seen.at(-1)?.["mcp-name"] !== "wait") await new Promise(setImmediate);
  abort.abort();
  await assert.rejects(call);
  await server.cancelled;
});

const META = { "io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {} };
const HEADERS = { "mcp-protocol-version": VERSION, "mcp-method": "tools/call", "mcp-name": "echo" };
const CALL = {
  jsonrpc: "2.0",
  id: 3,
  method: "tools/call",
  params: { name: "echo", arguments: { text: "a" }, _meta: META },
};
const of = (method: string, params: object = { _meta: META }): object => ({ jsonrpc: "2.0", id: 3, method, params });

type Row = readonly [
  what: string,
  message: unknown,
  headers: Record<string, string | undefined>,
  status: number,
  code?: number,
];
const ROWS: readonly Row[] = [
  ["a call", CALL, {}, 200],
  ["a name that is wrapped", CALL, { "mcp-name": "=?base64?ZWNobw==?=" }, 200],
  ["a session header", CALL, { "mcp-session-id": "made-up" }, 200],
  ["no version header", CALL, { "mcp-protocol-version": undefined }, 400, -32_020],
  [
    "another version in the body",
    of("tools/call", { name: "echo", _meta: { ...META, "io.modelcontextprotocol/protocolVersion": "2025-11-25" } }),
    {},
    400,
    -32_020,
  ],
  [
    "a body of this version under a header of one with sessions",
    CALL,
    { "mcp-protocol-version": "2025-11-25" },
    400,
    -32_020,
  ],
  ["no version in the body", of("tools/call", { name: "echo" }), {}, 400, -32_602],
  ["an unknown version", CALL, { "mcp-protocol-version": "2030-01-01" }, 400, -32_022],
  ["no Mcp-Method", CALL, { "mcp-method": undefined }, 400, -32_020],
  ["another Mcp-Method", CALL, { "mcp-method": "tools/list" }, 400, -32_020],
  ["no Mcp-Name", CALL, { "mcp-name": undefined }, 400, -32_020],
  ["another Mcp-Name", CALL, { "mcp-name": "other" }, 400, -32_020],
  ["a broken wrapping", CALL, { "mcp-name": "=?base64?ZWNobw?=" }, 400, -32_020],
  ["an unknown method", of("unknown"), { "mcp-method": "unknown" }, 404, -32_601],
  ["initialize", of("initialize"), { "mcp-method": "initialize" }, 404, -32_601],
  ["ping", of("ping"), { "mcp-method": "ping" }, 404, -32_601],
  ["logging/setLevel", of("logging/setLevel"), { "mcp-method": "logging/setLevel" }, 404, -32_601],
  ["a batch", [CALL], {}, 400, -32_600],
  ["a response", { jsonrpc: "2.0", id: 3, result: {} }, {}, 400, -32_600],
];

test("headers and body of a request agree, or it is refused", async (t) => {
  const server = await startModernMcpServer(t);
  const url = await start(t, server.port);
  for (const [what, message, headers, status, code] of ROWS) {
    const merged = Object.entries({ ...HEADERS, ...headers }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    );
    const answer = await post(url, message, Object.fromEntries(merged));
    assert.equal(answer.status, status, `${what}: ${answer.body}`);
    assert.equal(answer.headers["mcp-session-id"], undefined, what);
    const { error, id } = parseJson(answer.body) as { error?: { code: number }; id: unknown };
    assert.equal(error?.code, code, `${what}: ${answer.body}`);
    const isRequest = typeof message === "object" && message !== null && "method" in message;
    assert.equal(id, isRequest ? 3 : null, what);
  }
  for (const [name, values, code] of [
    ["mcp-method", ["tools/call", "tools/list"], -32_020],
    ["mcp-name", ["echo", "other"], -32_020],
    ["mcp-protocol-version", [VERSION, "2025-11-25"], -32_022],
  ] as const) {
    const headers = { ...MCP_HEADERS, ...HEADERS, [name]: [...values] };
    const { status, body } = await call(url, { method: "POST", headers, body: JSON.stringify(CALL) });
    const { error } = parseJson(body) as { error?: { code: number } };
    assert.deepEqual([status, error?.code], [400, code], `two of ${name}: ${body}`);
  }
  for (const method of ["GET", "DELETE"]) {
    const answer = await fetch(url, {
      method,
      headers: { "mcp-protocol-version": VERSION, accept: "text/event-stream" },
    });
    assert.equal(answer.status, 405, method);
  }
});

test("changes of lists reach clients that listen for them", async (t) => {
  const server = await startModernMcpServer(t);
  const client = await connect(t, await start(t, server.port));
  const changed = Promise.withResolvers<void>();
  client.setNotificationHandler("notifications/tools/list_changed", () => changed.resolve());
  const subscription = await client.listen({ toolsListChanged: true });
  server.notify.toolsChanged();
  await changed.promise;
  await subscription.close();
});
