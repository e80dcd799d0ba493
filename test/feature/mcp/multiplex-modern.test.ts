/** Several servers that speak 2026-07-28 behind one backend: the official client of that version sees one server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { acceptedContent, inputRequired, type McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import { expectEvent } from "../../support/proofs/expect-event.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";
import { startModernMcpServer, type ModernMcpServer } from "../../support/servers/modern-mcp-server.ts";

function manifests(ports: Readonly<Record<string, number>>): string {
  const targets = Object.entries(ports).map(
    ([name, port]) => `{name: ${name}, static: {host: 127.0.0.1, port: ${port}}}`,
  );
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec:
  mcp: {targets: [${targets.join(", ")}]}`;
  return documents(GATEWAY, backend, route("tools", "tools"));
}

async function connect(context: ProofContext, url: string, setUp: (client: Client) => void = () => undefined) {
  const client = new Client(
    { name: "test-client", version: "1.0.0" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } },
  );
  setUp(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  context.after(() => client.close());
  return client;
}

/** Adds a tool that asks for input, and a resource that can be watched. */
function configure(server: McpServer, name: string): void {
  server.server.registerCapabilities({ resources: { subscribe: true } });
  server.registerTool("confirm", { inputSchema: z.object({}) }, (_input, { mcpReq }) => {
    const answer = acceptedContent<{ ok: boolean }>(mcpReq.inputResponses, "confirm");
    if (answer !== undefined) return { content: [{ type: "text", text: `${name}: ${answer.ok}` }] };
    const requestedSchema = { type: "object" as const, properties: { ok: { type: "boolean" as const } } };
    return inputRequired({
      inputRequests: { confirm: inputRequired.elicit({ message: `${name}?`, requestedSchema }) },
    });
  });
  server.registerResource("note", `note://${name}/1`, {}, (uri) => ({
    contents: [{ uri: uri.href, text: `note of ${name}` }],
  }));
}

function startServer(context: ProofContext, name: string): Promise<ModernMcpServer> {
  return startModernMcpServer(context, name, (server) => configure(server, name));
}

async function startTwo(context: ProofContext) {
  const alpha = await startServer(context, "alpha");
  const beta = await startServer(context, "beta");
  const ports = { alpha: alpha.port, beta: beta.port };
  const gateway = await startGateway(context, manifests(ports));
  return { alpha, beta, ports, gateway, url: `${gateway.url()}/mcp` };
}

test("everything of two servers can be used as it is listed, without a session", async (context) => {
  const { alpha, url } = await startTwo(context);
  const client = await connect(context, url);
  assert.equal(client.getServerVersion()?.name, "gwproxy");
  assert.match(client.getInstructions() ?? "", /\[beta\]\ninstructions of beta$/);
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    ["alpha", "beta"].flatMap((name) => ["echo", "wait", "confirm"].map((tool) => `${name}_${tool}`)),
  );
  const { content } = await client.callTool({ name: "beta_echo", arguments: { text: "x" } });
  assert.deepEqual(content, [{ type: "text", text: "beta: x" }]);
  const { resources } = await client.listResources();
  for (const { uri } of resources) assert.equal((await client.readResource({ uri })).contents[0]?.uri, uri);
  assert.deepEqual(
    alpha.seen.map((headers) => headers["mcp-method"]),
    ["server/discover", "tools/list", "resources/list", "resources/read"],
  );
});

test("a tool asks for input through its result, and gets it", async (context) => {
  const { url } = await startTwo(context);
  const client = await connect(context, url, (each) =>
    each.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { ok: true } })),
  );
  const { content } = await client.callTool({ name: "alpha_confirm", arguments: {} });
  assert.deepEqual(content, [{ type: "text", text: "alpha: true" }]);
});

test("a subscription merges what servers tell, and tells of servers that come", async (context) => {
  const { alpha, beta, ports, gateway, url } = await startTwo(context);
  const updated: string[] = [];
  let told = Promise.withResolvers<void>();
  const client = await connect(context, url, (each) => {
    each.setNotificationHandler("notifications/resources/updated", ({ params }) => {
      updated.push(params.uri);
      told.resolve();
    });
    each.setNotificationHandler("notifications/tools/list_changed", () => told.resolve());
  });
  const subscription = await client.listen({
    toolsListChanged: true,
    resourceSubscriptions: ["alpha+note://alpha/1", "beta+note://beta/1", "gamma+note://gamma/1"],
  });
  assert.deepEqual(subscription.honoredFilter, {
    toolsListChanged: true,
    resourceSubscriptions: ["alpha+note://alpha/1", "beta+note://beta/1"],
  });
  for (const [name, server] of Object.entries({ alpha, beta })) {
    server.notify.resourceUpdated(`note://${name}/1`);
    await expectEvent(context, told.promise, `the notification of ${name}`);
    told = Promise.withResolvers<void>();
  }
  assert.deepEqual(updated, ["alpha+note://alpha/1", "beta+note://beta/1"]);
  beta.notify.toolsChanged();
  await expectEvent(context, told.promise, "list_changed of a server");
  told = Promise.withResolvers<void>();
  const gamma = await startServer(context, "gamma");
  await gateway.change(manifests({ ...ports, gamma: gamma.port }));
  await expectEvent(context, told.promise, "list_changed of the gateway");
  const { tools } = await client.listTools();
  assert.equal(tools.length, 9);
  await subscription.close();
});

test("a server of an older version among them makes clients begin with initialize", async (context) => {
  const older = await startMcpServer(context, { name: "older" });
  const another = await startMcpServer(context, { name: "another" });
  const gateway = await startGateway(context, manifests({ older: older.port, another: another.port }));
  const client = await connect(context, `${gateway.url()}/mcp`);
  const { tools } = await client.listTools();
  assert.equal(tools.length, 6);
  assert.ok(older.methods().includes("initialize"));
});
