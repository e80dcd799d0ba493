/** What logs and metrics say about messages of MCP clients, and what they keep to themselves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connectMcp, post } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, gatewayPolicy, route, startGateway } from "../../support/gateway/gateway.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { createMeasured } from "../../support/gateway/measured.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";

test("log lines and metrics name the method, the target and the item, and no secret", async (t) => {
  const servers = [await startMcpServer(t, { name: "first" }), await startMcpServer(t, { name: "second" })];
  const targets = servers.map(({ port }, at) => `{name: t${at}, static: {host: 127.0.0.1, port: ${port}}}`);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec:
  mcp: {targets: [${targets.join(", ")}]}
`;
  const added = Object.entries({
    method: "mcp.methodName",
    argument: "mcp.tool.arguments.text",
    owner: "mcp.tool.target",
  })
    .map(([name, expression]) => `{name: ${name}, expression: ${expression}}`)
    .join(", ");
  const log = gatewayPolicy("log", `  frontend: {accessLog: {attributes: {add: [${added}]}}}`);
  const lines = keepLines(t);
  const { metrics, counted } = createMeasured();
  const manifests = documents(GATEWAY, backend, route("tools", "tools"), log);
  const gateway = await startGateway(t, manifests, { telemetry: { accessLog: lines.accessLog, metrics } });
  const url = `${gateway.url()}/mcp`;
  const { client, transport } = await connectMcp(t, url);
  const nextOf = async (method: string): Promise<Record<string, unknown>> => {
    for (;;) {
      const line = await lines.nextFields();
      if (line["mcp.method.name"] === method) return line;
    }
  };

  await client.callTool({ name: "t1_echo", arguments: { text: "visible" } });
  const called = await nextOf("tools/call");
  assert.deepEqual(
    ["protocol", "mcp.target", "mcp.resource.type", "gen_ai.tool.name", "argument", "owner", "method"].map(
      (name) => called[name],
    ),
    ["mcp", "t1", "tool", "echo", "visible", "t1", "tools/call"],
  );
  const digest = String(called["mcp.session.id"]);
  assert.match(digest, /^[0-9a-f]{16}$/);
  assert.ok(!JSON.stringify(called).includes(transport.sessionId ?? ""));

  await client.readResource({ uri: "t0+note://first/1" });
  const read = await nextOf("resources/read");
  assert.deepEqual([read["mcp.target"], read["mcp.resource.uri"]], ["t0", "note://first/1"]);

  await client.listTools();
  const listed = await nextOf("tools/list");
  assert.deepEqual(
    [listed["mcp.target"], listed["mcp.resource.type"], listed["mcp.session.id"]],
    [undefined, "tool", digest],
  );

  const session = { "mcp-session-id": transport.sessionId ?? "" };
  await post(url, { jsonrpc: "2.0", id: 9, method: "made/up" }, session);
  const unknown = await nextOf("unknown");
  assert.deepEqual([unknown["mcp.error.code"], unknown["mcp.error.message"]], [-32_601, "Method not found"]);
  // Names that clients make up would fill logs and metrics.
  await post(url, { jsonrpc: "2.0", method: "notifications/made/up" }, session);
  assert.equal((await nextOf("unknown"))["mcp.error.code"], undefined);

  const [sample] = await counted("mcp_requests_total", 1, { method: "tools/call" });
  assert.deepEqual(
    ["resource_type", "server", "resource"].map((name) => sample?.labels[name]),
    ["tool", "t1", "echo"],
  );
  const [resource] = await counted("mcp_requests_total", 1, { method: "resources/read" });
  assert.deepEqual([resource?.labels["server"], resource?.labels["resource"]], ["t0", "unknown"]);
});
