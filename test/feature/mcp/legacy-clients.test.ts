/** Clients of HTTP+SSE (2024-11-05) use servers through the gateway: one stream for all answers, and posts to it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { ListRootsRequestSchema, ResourceListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { BackendSchema, McpBackendSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import { call } from "../../support/clients/http.ts";
import { INITIALIZE, openSse, post } from "../../support/clients/mcp.ts";
import { listener, route as irRoute, to } from "../../support/gateway/data-plane.ts";
import { documents, GATEWAY, route, routePolicy, startGateway } from "../../support/gateway/gateway.ts";
import { startWorkers } from "../../support/gateway/workers.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer, type TestMcpServer } from "../../support/servers/mcp-server.ts";

const PING = { jsonrpc: "2.0", id: 2, method: "ping" };

function manifests(port: number, ...more: readonly string[]): string {
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec: {mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]}}
`;
  return documents(GATEWAY, backend, route("tools", "tools"), ...more);
}

function resources(port: number): Resource[] {
  const place = { case: "static", value: { host: "127.0.0.1", port } } as const;
  const mcp = create(McpBackendSchema, { targets: [{ name: "one", path: "/mcp", place }] });
  const backend = create(BackendSchema, { key: "backend/default/tools", kind: { case: "mcp", value: mcp } });
  return [listener(), irRoute("r", [to("tools")]), resourceOf("Backend", backend)];
}

/** URLs of a gateway of one thread and of one of two. */
const GATEWAYS: readonly (readonly [what: string, start: (t: ProofContext, port: number) => Promise<string>])[] = [
  ["one thread", async (t, port) => (await startGateway(t, manifests(port))).url()],
  ["two threads", async (t, port) => (await startWorkers(t, resources(port))).url],
];

/** Connects the official client. */
async function connect(t: ProofContext, url: string): Promise<Client> {
  const client = new Client({ name: "legacy", version: "1" }, { capabilities: { roots: {} } });
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///home" }] }));
  // Each post has a connection of its own, which any thread may get.
  const fetchAlone: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("connection", "close");
    return fetch(input, { ...init, headers });
  };
  const transport = new SSEClientTransport(new URL(`${url}/sse`), { fetch: fetchAlone });
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  t.after(() => client.close());
  return client;
}

for (const [what, start] of GATEWAYS)
  test(`the official client calls, is asked and is told of changes over one stream (${what})`, async (t) => {
    const server = await startMcpServer(t);
    const client = await connect(t, await start(t, server.port));
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_each, at) => client.callTool({ name: "echo", arguments: { text: String(at) } })),
    );
    assert.deepEqual(
      answers.map(({ content }) => content),
      answers.map((_each, at) => [{ type: "text", text: `test: ${at}` }]),
    );
    for (let at = 0; at < 4; at++) {
      const asked = await client.callTool({ name: "ask", arguments: {} });
      assert.deepEqual(asked.content, [{ type: "text", text: "file:///home" }]);
    }
    assert.equal(server.methods().filter((method) => method === "initialize").length, 1);

    const changed = new Promise<void>((resolve) => {
      client.setNotificationHandler(ResourceListChangedNotificationSchema, () => resolve());
    });
    while (!server.calls.some(({ method }) => method === "GET")) await new Promise(setImmediate);
    for (const { server: each } of server.servers()) await each.sendResourceListChanged();
    await changed;

    await client.close();
    while (server.sessions().length > 0) await new Promise(setImmediate);
  });

async function startOne(t: ProofContext, ...more: readonly string[]): Promise<{ url: string; server: TestMcpServer }> {
  const server = await startMcpServer(t);
  return { url: (await startGateway(t, manifests(server.port, ...more))).url(), server };
}

test("the address to post to is that of the stream, with its query, and the id of the stream", async (t) => {
  const { url } = await startOne(t);
  const { address, response } = await openSse(t, `${url}/sse?key=a%20b`);
  assert.match(address, /^\/sse\?key=a%20b&sessionId=[\w-]+$/);
  assert.equal(response.headers["content-type"], "text/event-stream");
});

test("posts are accepted and answered on the stream, errors too", async (t) => {
  const { url, server } = await startOne(t);
  const { address, next } = await openSse(t, `${url}/sse`);
  const tell = async (message: unknown): Promise<[number, string]> => {
    const { status, body } = await post(url + address, message);
    return [status, body];
  };
  assert.deepEqual(await tell(PING), [202, ""]);
  const uninitialized = { code: -32_600, message: "the session is not initialized" };
  assert.deepEqual(await next(), { jsonrpc: "2.0", id: 2, error: uninitialized });
  assert.deepEqual(await tell(INITIALIZE.replace("2025-11-25", "2024-11-05")), [202, ""]);
  assert.equal(((await next()) as { result?: { protocolVersion?: string } }).result?.protocolVersion, "2024-11-05");
  assert.deepEqual(await tell({ jsonrpc: "2.0", method: "notifications/initialized" }), [202, ""]);
  await tell({ jsonrpc: "2.0", id: 3, method: "unknown" });
  assert.deepEqual(await next(), { jsonrpc: "2.0", id: 3, error: { code: -32_601, message: "Method not found" } });
  await tell(INITIALIZE);
  assert.deepEqual(await next(), {
    jsonrpc: "2.0",
    id: 1,
    error: { code: -32_600, message: "the session is initialized already" },
  });
  await tell(PING);
  assert.deepEqual(await next(), { jsonrpc: "2.0", id: 2, result: {} });
  const params = { name: "count", arguments: { to: 2 }, _meta: { progressToken: 7 } };
  await tell({ jsonrpc: "2.0", id: 4, method: "tools/call", params });
  const told = [await next(), await next(), await next()] as { id?: number; params?: { progress: number } }[];
  assert.deepEqual(
    told.map(({ id, params: said }) => id ?? said?.progress),
    [1, 2, 4],
  );
  assert.equal(server.sessions().length, 1);
});

test("a post that has no stream, or cannot be read, is refused", async (t) => {
  const { url } = await startOne(t);
  const { address, close } = await openSse(t, `${url}/sse`);
  const changed = address.replace(/.$/, (last) => (last === "A" ? "B" : "A"));
  const rows: readonly (readonly [what: string, path: string, body: string, status: number])[] = [
    ["no id", "/sse", JSON.stringify(PING), 422],
    ["an id that was made up", "/sse?sessionId=abc", JSON.stringify(PING), 404],
    ["an id that was changed", changed, JSON.stringify(PING), 404],
    ["no JSON", address, "{", 400],
    ["a batch", address, JSON.stringify([PING]), 400],
    ["a modern request", address, JSON.stringify(PING), 400],
  ];
  for (const [what, path, body, status] of rows) {
    const version: Record<string, string> = what === "a modern request" ? { "mcp-protocol-version": "2026-07-28" } : {};
    assert.equal((await post(url + path, body, version)).status, status, what);
  }
  assert.equal((await call(`${url}/sse`, { method: "DELETE" })).status, 405);
  assert.equal((await call(`${url}/sse`)).status, 406);
  close();
  while ((await post(url + address, PING)).status !== 404) await new Promise(setImmediate);
});

test("the stream of one user is unknown to another", async (t) => {
  const keys = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {ann: key-of-ann, eve: key-of-eve}
`;
  const policy = routePolicy("keys", "tools", "  traffic: {apiKeyAuthentication: {secretRef: {name: keys}}}");
  const { url } = await startOne(t, keys, policy);
  const { address } = await openSse(t, `${url}/sse`, { authorization: "Bearer key-of-ann" });
  const statusFor = async (key: string): Promise<number> =>
    (await post(url + address, PING, { authorization: `Bearer ${key}` })).status;
  assert.equal(await statusFor("key-of-eve"), 404);
  assert.equal(await statusFor("key-of-ann"), 202);
});
