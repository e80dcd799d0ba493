/** Sessions of MCP clients: any replica and thread goes on with them, and what a server has lost is healed unseen. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { BackendSchema, McpBackendSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import { call } from "../../support/clients/http.ts";
import { connectMcp, INITIALIZE, MCP_HEADERS, post } from "../../support/clients/mcp.ts";
import { listener, route as irRoute, to } from "../../support/gateway/data-plane.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { startWorkers } from "../../support/gateway/workers.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";

const OLD_KEY = "01".repeat(32);
const NEW_KEY = "02".repeat(32);

function manifests(port: number, ...more: readonly string[]): string {
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec:
  mcp:
    targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]
`;
  return documents(GATEWAY, backend, route("tools", "tools"), ...more);
}

function start(context: Pick<ProofContext, "after">, port: number, keys = [OLD_KEY]): Promise<TestGateway> {
  return startGateway(context, manifests(port), { sessionKeys: keys });
}

/** Sends each request to the next of the URLs. */
function alternating(urls: readonly string[]): typeof fetch {
  let at = 0;
  return (input, init) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input);
    return fetch(`${urls[at++ % urls.length]}${pathname}`, init);
  };
}

test("two gateways with one key serve one session, request by request", async (t) => {
  const server = await startMcpServer(t);
  const gateways = [await start(t, server.port), await start(t, server.port)];
  const urls = gateways.map((gateway) => gateway.url());
  const { client } = await connectMcp(t, `${urls[0]}/mcp`, undefined, { fetch: alternating(urls) });
  for (let at = 0; at < 60; at++) {
    const called = await client.callTool({ name: "echo", arguments: { text: String(at) } });
    assert.deepEqual(called.content, [{ type: "text", text: `test: ${at}` }]);
  }
  assert.equal(server.methods().filter((method) => method === "initialize").length, 1);
});

test("a key that is replaced ends no session while the former one still opens", async (t) => {
  const server = await startMcpServer(t);
  const old = await start(t, server.port, [OLD_KEY]);
  const { client, transport } = await connectMcp(t, `${old.url()}/mcp`);
  await client.ping();
  const session = { "mcp-session-id": transport.sessionId ?? "" };
  const rotated = await start(t, server.port, [NEW_KEY, OLD_KEY]);
  assert.equal((await post(`${rotated.url()}/mcp`, PING, session)).status, 200);
  const other = await start(t, server.port, [NEW_KEY]);
  assert.equal((await post(`${other.url()}/mcp`, PING, session)).status, 404);
});

test("calls that find a lost session heal it once, with the log level and subscriptions of before", async (t) => {
  const server = await startMcpServer(t);
  const gateway = await start(t, server.port);
  const { client } = await connectMcp(t, `${gateway.url()}/mcp`);
  await client.setLoggingLevel("warning");
  await client.subscribeResource({ uri: "one+note://test/1" });
  server.forgetSessions();
  const before = server.methods().length;
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => client.callTool({ name: "echo", arguments: { text: "a" } })),
  );
  for (const { content } of answers) assert.deepEqual(content, [{ type: "text", text: "test: a" }]);
  const since = server.methods().slice(before);
  const count = (name: string): number => since.filter((method) => method === name).length;
  assert.deepEqual(
    ["initialize", "notifications/initialized", "logging/setLevel", "resources/subscribe"].map(count),
    [1, 1, 1, 1],
  );
  const told = server.calls.flatMap(({ messages }) => messages).findLast(({ method }) => method === "initialize");
  assert.deepEqual(told !== undefined && "params" in told && told.params, {
    protocolVersion: "2025-11-25",
    capabilities: { roots: {} },
    clientInfo: { name: "test-client", version: "1.0.0" },
  });
});

test("a replica that never saw the session heals it as well", async (t) => {
  const server = await startMcpServer(t);
  const first = await start(t, server.port);
  const { transport } = await connectMcp(t, `${first.url()}/mcp`);
  server.forgetSessions();
  const second = await start(t, server.port);
  const answer = await post(`${second.url()}/mcp`, PING, { "mcp-session-id": transport.sessionId ?? "" });
  assert.equal(answer.status, 200, answer.body);
});

test("a session that cannot be healed is gone for the client, who then begins another one", async (t) => {
  let refuses = false;
  const server = await startMcpServer(t, { refusesSessions: () => refuses });
  const gateway = await start(t, server.port);
  const { transport } = await connectMcp(t, `${gateway.url()}/mcp`);
  server.forgetSessions();
  refuses = true;
  assert.equal((await post(`${gateway.url()}/mcp`, PING, { "mcp-session-id": transport.sessionId ?? "" })).status, 404);
});

test("DELETE ends the session with the server, and nothing brings it back", async (t) => {
  const server = await startMcpServer(t);
  const gateway = await start(t, server.port);
  const url = `${gateway.url()}/mcp`;
  const { transport } = await connectMcp(t, url);
  const headers = { "mcp-session-id": transport.sessionId ?? "" };
  assert.equal((await call(url, { method: "DELETE", headers })).status, 202);
  while (server.sessions().length > 0) await new Promise(setImmediate);
  const calls = server.calls.length;
  assert.equal((await post(url, PING, headers)).status, 404);
  assert.equal((await call(url, { headers: { ...headers, accept: "text/event-stream" } })).status, 404);
  assert.equal((await call(url, { method: "DELETE", headers })).status, 202);
  assert.equal(server.calls.length, calls);
});

test("the session of one user is unknown to another, and to a caller without a name", async (t) => {
  const server = await startMcpServer(t);
  const keys = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {ann: key-of-ann, eve: key-of-eve}
`;
  const settings = "{mode: Optional, secretRef: {name: keys}}";
  const policy = routePolicy("keys", "tools", `  traffic: {apiKeyAuthentication: ${settings}}`);
  const gateway = await startGateway(t, manifests(server.port, keys, policy));
  const url = `${gateway.url()}/mcp`;
  const begun = await post(url, INITIALIZE, { authorization: "Bearer key-of-ann" });
  const session = { "mcp-session-id": String(begun.headers["mcp-session-id"]) };
  const statusFor = async (headers: Record<string, string>): Promise<number> =>
    (await post(url, PING, { ...session, ...headers })).status;
  assert.equal(await statusFor({ authorization: "Bearer key-of-eve" }), 404);
  assert.equal(await statusFor({}), 404);
  const deleted = await call(url, { method: "DELETE", headers: { ...session, authorization: "Bearer key-of-eve" } });
  assert.equal(deleted.status, 202);
  assert.equal(await statusFor({ authorization: "Bearer key-of-ann" }), 200);
});

test("the threads of one gateway serve one session, also after it was healed or ended on one of them", async (t) => {
  const server = await startMcpServer(t);
  const place = { case: "static", value: { host: "127.0.0.1", port: server.port } } as const;
  const key = "backend/default/tools";
  const mcp = create(McpBackendSchema, { targets: [{ name: "one", path: "/mcp", place }] });
  const backend = resourceOf("Backend", create(BackendSchema, { key, kind: { case: "mcp", value: mcp } }));
  const plane = await startWorkers(t, [listener(), irRoute("r", [to("tools")]), backend]);
  const url = `${plane.url}/mcp`;
  const begun = await post(url, INITIALIZE);
  const session = { "mcp-session-id": String(begun.headers["mcp-session-id"]) };
  // Each call has a connection of its own, which either thread may get.
  const statuses = async (message: object = PING): Promise<Set<number>> => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => post(url, message, session)));
    return new Set(answers.map(({ status }) => status));
  };
  assert.deepEqual(await statuses(), new Set([200]));
  // Both threads know the level, and set it again after they have entered the server.
  assert.deepEqual(await statuses(SET_LEVEL), new Set([200]));
  for (let times = 0; times < 3; times++) {
    server.forgetSessions();
    assert.deepEqual(await statuses(), new Set([200]));
    // Threads that found the loss at once have agreed on one session, and left the others.
    assert.equal(server.sessions().length, 1);
  }
  assert.equal((await call(url, { method: "DELETE", headers: { ...MCP_HEADERS, ...session } })).status, 202);
  assert.deepEqual(await statuses(), new Set([404]));
});

const SET_LEVEL = { jsonrpc: "2.0", id: 3, method: "logging/setLevel", params: { level: "warning" } };
const PING = { jsonrpc: "2.0", id: 2, method: "ping" };
