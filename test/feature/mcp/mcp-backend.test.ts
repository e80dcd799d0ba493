/** An MCP backend with one target: the official client and the official server talk through the gateway. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ListRootsRequestSchema, LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { call } from "../../support/clients/http.ts";
import { connectMcp, INITIALIZE, MCP_HEADERS, post } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, route, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";

/** @param target flow YAML of the members of `static` */
function mcpBackend(name: string, target: string, more = ""): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  mcp:
    targets: [{name: one, static: ${target}}]
${more}`;
}

function startMcp(context: ProofContext, target: string, more = ""): Promise<TestGateway> {
  return startGateway(context, documents(GATEWAY, mcpBackend("tools", target, more), route("tools", "tools")));
}

for (const answersJson of [false, true])
  prove(
    ["GwBackend spec.mcp.targets[].static.host", "GwBackend spec.mcp.targets[].static.port"],
    `the official client uses the official server, which answers with ${answersJson ? "JSON" : "events"}`,
    async (context) => {
      const server = await startMcpServer(context, { answersJson });
      const gateway = await startMcp(context, `{host: 127.0.0.1, port: ${server.port}}`);
      const { client, transport } = await connectMcp(context, `${gateway.url()}/mcp`);
      assert.equal(client.getServerVersion()?.name, "test");
      assert.equal(client.getInstructions(), "instructions of test");
      assert.notEqual(transport.sessionId, undefined);
      assert.ok(!server.sessions().includes(transport.sessionId ?? ""), "the session id is the gateway's own");
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map(({ name }) => name).sort(), ["ask", "count", "echo"]);
      const called = await client.callTool({ name: "echo", arguments: { text: "x".repeat(100_000) } });
      assert.deepEqual(called.content, [{ type: "text", text: `test: ${"x".repeat(100_000)}` }]);
      const { prompts } = await client.listPrompts();
      assert.deepEqual(
        prompts.map(({ name }) => name),
        ["greet"],
      );
      const prompt = await client.getPrompt({ name: "greet", arguments: { who: "you" } });
      assert.deepEqual(prompt.messages[0]?.content, { type: "text", text: "hello you from test" });
      await client.ping();
      await client.setLoggingLevel("debug");
      assert.deepEqual(server.methods().slice(0, 2), ["initialize", "notifications/initialized"]);
    },
  );

prove(
  "GwBackend spec.mcp.targets[].static.host",
  "progress, requests and log messages of the server reach the client",
  async (context) => {
    const server = await startMcpServer(context);
    const gateway = await startMcp(context, `{host: 127.0.0.1, port: ${server.port}}`);
    const logged = Promise.withResolvers<unknown>();
    const { client } = await connectMcp(context, `${gateway.url()}/mcp`, (each) => {
      each.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///home" }] }));
      each.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logged.resolve(params.data));
    });
    const seen: number[] = [];
    await client.callTool({ name: "count", arguments: { to: 3 } }, undefined, {
      onprogress: ({ progress }) => void seen.push(progress),
    });
    assert.deepEqual(seen, [1, 2, 3]);
    const asked = await client.callTool({ name: "ask", arguments: {} });
    assert.deepEqual(asked.content, [{ type: "text", text: "file:///home" }]);
    while (!server.calls.some(({ method }) => method === "GET")) await new Promise(setImmediate);
    for (const each of server.servers()) await each.sendLoggingMessage({ level: "info", data: "said" });
    assert.equal(await logged.promise, "said");
  },
);

/** A stream that is silent would be answered with its first comment otherwise, after many more pings than these. */
const PINGS = 200;

test("the head of a stream reaches the client before the server says anything", async (t) => {
  const context = contextOf(t);
  const server = await startMcpServer(context);
  const gateway = await startMcp(context, `{host: 127.0.0.1, port: ${server.port}}`);
  const url = `${gateway.url()}/mcp`;
  const begun = await post(url, INITIALIZE);
  const session = { "mcp-session-id": String(begun.headers["mcp-session-id"]) };
  await post(url, { jsonrpc: "2.0", method: "notifications/initialized" }, session);
  const end = new AbortController();
  let status = 0;
  const stream = fetch(url, { headers: { accept: "text/event-stream", ...session }, signal: end.signal }).then(
    (answer) => (status = answer.status),
    () => 0,
  );
  context.after(() => end.abort());
  while (!server.calls.some(({ method }) => method === "GET")) await new Promise(setImmediate);
  for (let id = 2; id < PINGS && status === 0; id++) await post(url, { jsonrpc: "2.0", id, method: "ping" }, session);
  assert.equal(status, 200);
  await stream;
});

prove(
  "GwBackend spec.mcp.targets[].static.path",
  "requests go to the path of the target, with its query",
  async (context) => {
    const server = await startMcpServer(context);
    const gateway = await startMcp(context, `{host: 127.0.0.1, port: ${server.port}, path: "/tools?tenant=1"}`);
    const { client } = await connectMcp(context, `${gateway.url()}/anything`);
    await client.callTool({ name: "echo", arguments: { text: "a" } });
    assert.deepEqual(new Set(server.calls.map(({ path }) => path)), new Set(["/tools?tenant=1"]));
  },
);

prove(
  ["GwBackend spec.mcp.targets[].static.policies.auth.key", "GwBackend spec.mcp.targets[].name"],
  "a target gets the credential of its own policies, and settings of a policy that names it",
  async (context) => {
    const server = await startMcpServer(context);
    const target = `{host: 127.0.0.1, port: ${server.port}, policies: {auth: {key: k1}}}`;
    const policy = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: limits}
spec:
  targetRefs: [{group: gwproxy.dev, kind: GwBackend, name: tools, sectionName: one}]
  backend: {http: {version: HTTP2}}
`;
    const manifests = documents(GATEWAY, mcpBackend("tools", target), route("tools", "tools"));
    const gateway = await startGateway(context, manifests);
    await connectMcp(context, `${gateway.url()}/mcp`);
    assert.equal(server.calls[0]?.headers.authorization, "Bearer k1");
    await gateway.change(documents(manifests, policy));
    // The server speaks HTTP/1.1 only.
    const answer = await call(`${gateway.url()}/mcp`, { method: "POST", headers: MCP_HEADERS, body: INITIALIZE });
    assert.equal(answer.status, 500, answer.body);
  },
);

prove(
  "GwBackend spec.mcp.sessionRouting",
  "without sessions each request enters the server anew, and leaves it afterwards",
  async (context) => {
    const server = await startMcpServer(context);
    const gateway = await startMcp(context, `{host: 127.0.0.1, port: ${server.port}}`, "    sessionRouting: Stateless");
    const { client, transport } = await connectMcp(context, `${gateway.url()}/mcp`);
    assert.equal(transport.sessionId, undefined);
    const called = await client.callTool({ name: "echo", arguments: { text: "a" } });
    assert.deepEqual(called.content, [{ type: "text", text: "test: a" }]);
    assert.deepEqual(server.methods().slice(-3), ["initialize", "notifications/initialized", "tools/call"]);
    while (server.sessions().length > 0) await new Promise(setImmediate);
  },
);

test("a server that issues no session ids is entered once a minute by requests without sessions", async (t) => {
  const server = await startMcpServer(t, { hasNoSessions: true });
  const gateway = await startMcp(
    contextOf(t),
    `{host: 127.0.0.1, port: ${server.port}}`,
    "    sessionRouting: Stateless",
  );
  const ping = { jsonrpc: "2.0", id: 2, method: "ping" };
  for (let at = 0; at < 3; at++) assert.equal((await post(`${gateway.url()}/mcp`, ping)).status, 200);
  assert.deepEqual(server.methods(), ["initialize", "notifications/initialized", "ping", "ping", "ping"]);
});

prove(
  "GwBackend spec.mcp.targets[].static.backendRef.name",
  "a session stays on the endpoint of the Service that answered first",
  async (context) => {
    const servers = [
      await startMcpServer(context, { name: "first" }),
      await startMcpServer(context, { name: "second" }),
    ];
    const manifests = documents(
      GATEWAY,
      mcpBackend("tools", "{backendRef: {name: notes}, port: 80}"),
      route("tools", "tools"),
      serviceWith(
        "notes",
        servers.map(({ port }) => port),
      ),
    );
    const gateway = await startGateway(context, manifests);
    for (let session = 0; session < 4; session++) {
      const { client, transport } = await connectMcp(context, `${gateway.url()}/mcp`);
      const name = client.getServerVersion()?.name;
      assert.notEqual(transport.sessionId, undefined);
      for (let at = 0; at < 4; at++) {
        const called = await client.callTool({ name: "echo", arguments: { text: "a" } });
        assert.deepEqual(called.content, [{ type: "text", text: `${name}: a` }]);
      }
    }
  },
);

prove(
  "GwBackend spec.mcp.targets[].static.backendRef.name",
  "a session goes on at another endpoint when the one that it stays on has left the Service",
  async (context) => {
    const servers = [
      await startMcpServer(context, { name: "first" }),
      await startMcpServer(context, { name: "second" }),
    ];
    const manifestsWith = (ports: readonly number[]): string =>
      documents(
        GATEWAY,
        mcpBackend("tools", "{backendRef: {name: notes}, port: 80}"),
        route("tools", "tools"),
        serviceWith("notes", ports),
      );
    const gateway = await startGateway(context, manifestsWith(servers.map(({ port }) => port)));
    const { client, transport } = await connectMcp(context, `${gateway.url()}/mcp`);
    await client.setLoggingLevel("warning");
    const { sessionId } = transport;
    const stays = client.getServerVersion()?.name;
    const [left, other] = stays === "first" ? servers : servers.toReversed();
    assert.ok(left !== undefined && other !== undefined);
    await gateway.change(manifestsWith([other.port]));
    const before = left.calls.length;
    const called = await client.callTool({ name: "echo", arguments: { text: "a" } });
    assert.deepEqual(called.content, [{ type: "text", text: `${stays === "first" ? "second" : "first"}: a` }]);
    assert.deepEqual(
      other.methods().filter((method) => method !== "response"),
      ["initialize", "notifications/initialized", "logging/setLevel", "tools/call"],
    );
    assert.equal(transport.sessionId, sessionId);
    assert.equal(left.calls.length, before, "nothing is sent to the endpoint that left");
  },
);

prove(
  "GwBackend spec.mcp.prefixMode",
  "names carry the target of a single server too, and lead back to it",
  async (context) => {
    const server = await startMcpServer(context);
    const gateway = await startMcp(context, `{host: 127.0.0.1, port: ${server.port}}`, "    prefixMode: Always");
    const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map(({ name }) => name).sort(), ["one_ask", "one_count", "one_echo"]);
    const called = await client.callTool({ name: "one_echo", arguments: { text: "a" } });
    assert.deepEqual(called.content, [{ type: "text", text: "test: a" }]);
  },
);

prove(
  "GwBackend spec.mcp.failureMode",
  "a server that is down is left out of what the others answer",
  async (context) => {
    const server = await startMcpServer(context);
    const down = "{host: 127.0.0.1, port: 1}}, {name: two, static: ";
    const gateway = await startMcp(
      context,
      `${down}{host: 127.0.0.1, port: ${server.port}}`,
      "    failureMode: FailOpen",
    );
    const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map(({ name }) => name).sort(), ["two_ask", "two_count", "two_echo"]);
  },
);

test("a server that never answers is left out of lists when its time is over", async (context) => {
  const server = await startMcpServer(context);
  const port = await startHanging(context);
  const hanging = `{host: 127.0.0.1, port: ${port}, policies: {http: {requestTimeout: 200ms}}}`;
  const gateway = await startMcp(
    context,
    `${hanging}}, {name: two, static: {host: 127.0.0.1, port: ${server.port}}`,
    "    failureMode: FailOpen",
  );
  const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(({ name }) => name).sort(), ["two_ask", "two_count", "two_echo"]);
});

/** Starts a server that takes requests and never answers. */
async function startHanging(context: ProofContext): Promise<number> {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  // A TCP server that listens on a port has an address of this form.
  return (server.address() as AddressInfo).port;
}

/** A Service whose endpoints are these ports of loopback. */
function serviceWith(name: string, ports: readonly number[]): string {
  const service = `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {ports: [{name: mcp, port: 80}]}
`;
  const slices = ports.map(
    (port) => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-${port}, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: mcp, port: ${port}}]
endpoints: [{addresses: [127.0.0.1]}]
`,
  );
  return documents(service, ...slices);
}
