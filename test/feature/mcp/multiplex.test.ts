/**
 * An MCP backend with several targets: the official client sees one server, and everything that it is shown can be used
 * under that name.
 */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  ElicitRequestSchema,
  ListPromptsRequestSchema,
  ListRootsRequestSchema,
  ListToolsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { connectMcp } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, route, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { expectEvent } from "../../support/proofs/expect-event.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer, type McpServerOptions, type TestMcpServer } from "../../support/servers/mcp-server.ts";
import { startScripted } from "../../support/servers/scripted-server.ts";

type Servers = Readonly<Record<string, Pick<TestMcpServer, "port">>>;

function startServers(
  context: ProofContext,
  names: readonly string[],
  optionsOf: (name: string) => McpServerOptions = () => ({}),
): Promise<Readonly<Record<string, TestMcpServer>>> {
  return Promise.all(
    names.map(async (name) => [name, await startMcpServer(context, { name, ...optionsOf(name) })] as const),
  ).then(Object.fromEntries<TestMcpServer>);
}

/** @param more further members of `mcp`, as flow YAML */
function manifests(servers: Servers, more = ""): string {
  const targets = Object.entries(servers).map(
    ([name, { port }]) => `{name: ${name}, static: {host: 127.0.0.1, port: ${port}}}`,
  );
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec:
  mcp: {targets: [${targets.join(", ")}]${more === "" ? "" : `, ${more}`}}`;
  return documents(GATEWAY, backend, route("tools", "tools"));
}

function startMcp(context: ProofContext, servers: Servers, more?: string): Promise<TestGateway> {
  return startGateway(context, manifests(servers, more));
}

interface ModeCase {
  readonly mode: "Conditional" | "Always" | "Never";
  readonly names: readonly string[];
  readonly prefix: (name: string) => string;
  /** Field without which the names would be others. */
  readonly proves?: string;
}

const withName = (name: string): string => `${name}_`;
const withoutName = (): string => "";
const MODES: readonly ModeCase[] = [
  { mode: "Conditional", names: ["alpha"], prefix: withoutName },
  {
    mode: "Conditional",
    names: ["alpha", "beta"],
    prefix: withName,
    proves: "GwBackend spec.mcp.targets[].name",
  },
  { mode: "Always", names: ["alpha"], prefix: withName, proves: "GwBackend spec.mcp.prefixMode" },
  { mode: "Always", names: ["alpha", "beta"], prefix: withName },
  { mode: "Never", names: ["alpha"], prefix: withoutName },
];

for (const { proves, ...each } of MODES) {
  const title = `everything of ${each.names.length} servers can be used as it is listed: ${each.mode}`;
  if (proves === undefined) test(title, (context) => useEverything(context, each));
  else prove(proves, title, (context) => useEverything(context, each));
}

async function useEverything(context: ProofContext, { mode, names, prefix }: ModeCase): Promise<void> {
  const servers = await startServers(context, names);
  const gateway = await startMcp(context, servers, `prefixMode: ${mode}`);
  const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
  const { tools } = await client.listTools();
  const seen = (own: string): string[] => names.map((name) => prefix(name) + own);
  assert.deepEqual(tools.map(({ name }) => name).sort(), ["ask", "count", "echo"].flatMap(seen).sort());
  const { prompts } = await client.listPrompts();
  assert.deepEqual(
    prompts.map(({ name }) => name),
    seen("greet"),
  );
  const { resources } = await client.listResources();
  assert.deepEqual(
    resources.map(({ uri }) => uri),
    names.map((name) => `${name}+note://${name}/1`),
  );
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.deepEqual(
    resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    names.map((name) => `${name}+page://${name}/{id}`),
  );
  for (const name of names) {
    const called = await client.callTool({ name: `${prefix(name)}echo`, arguments: { text: "x" } });
    assert.deepEqual(called.content, [{ type: "text", text: `${name}: x` }]);
    const { messages } = await client.getPrompt({ name: `${prefix(name)}greet`, arguments: { who: "you" } });
    assert.deepEqual(messages[0]?.content, { type: "text", text: `hello you from ${name}` });
    for (const uri of [`${name}+note://${name}/1`, `${name}+page://${name}/2`]) {
      const { contents } = await client.readResource({ uri });
      assert.equal(contents[0]?.uri, uri);
    }
  }
}

/** A server with these tools and no others. */
function withTools(...tools: readonly string[]): (server: McpServer) => void {
  return (server) =>
    server.server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: tools.map((name) => ({ name, inputSchema: { type: "object" as const } })),
    }));
}

prove(
  "GwBackend spec.mcp.prefixMode",
  "names without a target reach the only server that has them",
  async (context) => {
    const servers = await startServers(context, ["alpha", "beta"], (name) => ({
      configure: withTools(...(name === "alpha" ? ["echo", "both"] : ["count", "both"])),
    }));
    const gateway = await startMcp(context, servers, "prefixMode: Never");
    const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name }) => name),
      ["echo", "count"],
    );
    const called = await client.callTool({ name: "echo", arguments: { text: "x" } });
    assert.deepEqual(called.content, [{ type: "text", text: "alpha: x" }]);
    const counted = await client.callTool({ name: "count", arguments: { to: 1 } });
    assert.deepEqual(counted.content, [{ type: "text", text: "counted to 1" }]);
    await assert.rejects(client.callTool({ name: "both" }), /Ambiguous tool: both/);
    await assert.rejects(client.callTool({ name: "none" }), /Unknown tool: none/);
  },
);

/** A server that lists its tools in pages of this size. */
function paged(size: number, count: number): (server: McpServer) => void {
  return (server) =>
    server.server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
      const start = Number(params?.cursor ?? 0);
      const end = Math.min(start + size, count);
      const tools = Array.from({ length: end - start }, (_, index) => ({
        name: `tool-${start + index}`,
        inputSchema: { type: "object" as const },
      }));
      return { tools, ...(end < count ? { nextCursor: `${end}` } : {}) };
    });
}

const SIZES: Readonly<Record<string, readonly [size: number, count: number]>> = {
  alpha: [2, 5],
  beta: [10, 3],
  gamma: [1, 4],
};

test("pages of several servers give every item once", async (context) => {
  const names = Object.keys(SIZES);
  const servers = await startServers(context, names, (name) => ({ configure: paged(...(SIZES[name] ?? [1, 1])) }));
  const gateway = await startMcp(context, servers);
  const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
  const listed: string[] = [];
  let pages = 0;
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const { tools, nextCursor } = await client.listTools(cursor === undefined ? {} : { cursor });
    listed.push(...tools.map(({ name }) => name));
    cursor = nextCursor;
    pages++;
  }
  const expected = names.flatMap((name) =>
    Array.from({ length: SIZES[name]?.[1] ?? 0 }, (_, index) => `${name}_tool-${index}`),
  );
  assert.deepEqual(listed.sort(), expected.sort());
  assert.equal(pages, 4);
  await assert.rejects(client.listTools({ cursor: "2" }), /Invalid cursor/);
});

/** A server whose tools ask the client, report and link to resources. */
function talkative(name: string): McpServerOptions {
  return {
    configure(server) {
      server.registerTool("confirm", { inputSchema: {} }, async (_input, extra) => {
        const answer = await extra.sendRequest(
          {
            method: "elicitation/create",
            params: { message: `${name}?`, requestedSchema: { type: "object", properties: {} } },
          },
          z.looseObject({ action: z.string() }),
        );
        return { content: [{ type: "text", text: `${name}: ${answer.action}` }] };
      });
      server.registerTool("link", { inputSchema: {} }, () => ({
        content: [{ type: "resource_link", uri: `note://${name}/1`, name: "note" }],
      }));
      server.registerTool("wait", { inputSchema: {} }, async (_input, extra) => {
        await server.server.sendLoggingMessage({ level: "info", data: `${name} waits` });
        await new Promise((resolve) => extra.signal.addEventListener("abort", resolve, { once: true }));
        return { content: [] };
      });
    },
  };
}

test("questions of several servers at once get their own answers", async (context) => {
  const servers = await startServers(context, ["alpha", "beta"], talkative);
  const gateway = await startMcp(context, servers);
  const { client } = await connectMcp(context, `${gateway.url()}/mcp`, (each) => {
    each.registerCapabilities({ elicitation: {}, roots: {} });
    // Both questions have been asked before one is answered, the later one first.
    const waiting: (() => void)[] = [];
    each.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 2) for (const answer of waiting.toReversed()) answer();
      });
      return { action: params.message === "alpha?" ? "accept" : "decline" };
    });
    each.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [] }));
  });
  const called = await Promise.all(
    ["alpha", "beta"].map((name) => client.callTool({ name: `${name}_confirm`, arguments: {} })),
  );
  assert.deepEqual(
    called.map(({ content }) => content),
    [[{ type: "text", text: "alpha: accept" }], [{ type: "text", text: "beta: decline" }]],
  );
});

test("names are looked for in several lists of one session at once", async (context) => {
  const asked = { tools: Promise.withResolvers<void>(), prompts: Promise.withResolvers<void>() };
  const both = Promise.all([asked.tools.promise, asked.prompts.promise]);
  // Each list waits until the other one has been asked for.
  const configure = (server: McpServer): void => {
    server.server.setRequestHandler(ListToolsRequestSchema, async () => {
      asked.tools.resolve();
      await both;
      return { tools: [{ name: "echo", inputSchema: { type: "object" as const } }] };
    });
    server.server.setRequestHandler(ListPromptsRequestSchema, async () => {
      asked.prompts.resolve();
      await both;
      return { prompts: [{ name: "greet" }] };
    });
  };
  const other = startScripted(context, ({ body }, response) => answerWithNothing(body, response));
  const servers = { ...(await startServers(context, ["alpha"], () => ({ configure }))), other: await other };
  const { client } = await connectMcp(context, `${(await startMcp(context, servers, "prefixMode: Never")).url()}/mcp`);
  const [echoed, greeting] = await Promise.all([
    client.callTool({ name: "echo", arguments: { text: "x" } }),
    client.getPrompt({ name: "greet", arguments: { who: "you" } }),
  ]);
  assert.deepEqual(echoed.content, [{ type: "text", text: "alpha: x" }]);
  assert.equal(greeting.messages.length, 1);
});

/** Answers as a server without tools and prompts, which accepts notifications with 200. */
function answerWithNothing(body: unknown, response: ServerResponse): void {
  const { id, method } = (body ?? {}) as { readonly id?: unknown; readonly method?: string };
  if (id === undefined) return void response.writeHead(body === undefined ? 405 : 200).end();
  const introduction = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" } };
  const outcome =
    method === "initialize" ? { result: introduction } : { error: { code: -32_601, message: "Method not found" } };
  response
    .writeHead(200, { "content-type": "application/json" })
    .end(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
}

test("a link to a resource in a result can be read", async (context) => {
  const servers = await startServers(context, ["alpha", "beta"], talkative);
  const gateway = await startMcp(context, servers);
  const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
  const { content } = await client.callTool({ name: "beta_link", arguments: {} });
  const [link] = content as { readonly uri: string }[];
  assert.equal(link?.uri, "beta+note://beta/1");
  const { contents } = await client.readResource({ uri: link.uri });
  assert.deepEqual(contents, [{ uri: link.uri, text: "note of beta" }]);
});

test("a cancellation reaches the server that works", async (context) => {
  const servers = await startServers(context, ["alpha", "beta"], talkative);
  const gateway = await startMcp(context, servers);
  const waiting = Promise.withResolvers<unknown>();
  const { client } = await connectMcp(context, `${gateway.url()}/mcp`, (each) =>
    each.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void waiting.resolve(params.data)),
  );
  const controller = new AbortController();
  const called = client.callTool({ name: "beta_wait", arguments: {} }, undefined, { signal: controller.signal });
  called.catch(() => undefined);
  assert.equal(await expectEvent(context, waiting.promise, "the call to begin"), "beta waits");
  controller.abort();
  await assert.rejects(called);
  const cancelled = (name: string): boolean => servers[name]?.methods().includes("notifications/cancelled") === true;
  while (!cancelled("beta")) await new Promise(setImmediate);
  assert.equal(cancelled("alpha"), false);
});

test("what servers send on their own reaches a client that subscribed, under the names that it knows", async (context) => {
  const servers = await startServers(context, ["alpha", "beta"]);
  const gateway = await startMcp(context, servers);
  const updated: string[] = [];
  const both = Promise.withResolvers<void>();
  const { client } = await connectMcp(context, `${gateway.url()}/mcp`, (each) =>
    each.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      if (updated.push(params.uri) === 2) both.resolve();
    }),
  );
  for (const name of ["alpha", "beta"]) {
    await client.subscribeResource({ uri: `${name}+note://${name}/1` });
    const server = servers[name];
    while (server?.calls.some(({ method }) => method === "GET") !== true) await new Promise(setImmediate);
    for (const each of server.servers()) await each.server.sendResourceUpdated({ uri: `note://${name}/1` });
  }
  await expectEvent(context, both.promise, "both notifications");
  assert.deepEqual(updated, ["alpha+note://alpha/1", "beta+note://beta/1"]);
});

test("a live session adopts servers that come and go, and is told of it", async (context) => {
  const servers = await startServers(context, ["alpha", "beta", "gamma"]);
  const { alpha, beta, gamma } = servers;
  assert.ok(alpha && beta && gamma);
  const gateway = await startMcp(context, { alpha, beta });
  let changed = Promise.withResolvers<void>();
  const { client } = await connectMcp(context, `${gateway.url()}/mcp`, (each) =>
    each.setNotificationHandler(ToolListChangedNotificationSchema, () => changed.resolve()),
  );
  for (const server of [alpha, beta])
    while (!server.calls.some(({ method }) => method === "GET")) await new Promise(setImmediate);
  await gateway.change(manifests({ beta, gamma }));
  await expectEvent(context, changed.promise, "list_changed");
  const { tools } = await client.listTools();
  assert.deepEqual(new Set(tools.map(({ name }) => name.split("_")[0])), new Set(["beta", "gamma"]));
  const called = await client.callTool({ name: "gamma_echo", arguments: { text: "x" } });
  assert.deepEqual(called.content, [{ type: "text", text: "gamma: x" }]);
  await assert.rejects(client.callTool({ name: "alpha_echo" }), /Unknown tool: alpha_echo/);
  changed = Promise.withResolvers<void>();
  for (const each of gamma.servers()) each.sendToolListChanged();
  await expectEvent(context, changed.promise, "list_changed of the server that came");
});

/** A server that closes its stream after each message, and keeps the next one for who asks behind the last event. */
async function startPolledServer(context: ProofContext): Promise<number> {
  const http = createServer((request, response) => {
    if (request.method === "POST") {
      const isRequest = request.headers["mcp-method"] === "initialize";
      const headers = { "content-type": "application/json", "mcp-session-id": "polled" };
      response.writeHead(isRequest ? 200 : 202, isRequest ? headers : {});
      const result = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "polled", version: "1" } };
      response.end(isRequest ? JSON.stringify({ jsonrpc: "2.0", id: 0, result }) : "");
      return;
    }
    const seen = Number(request.headers["last-event-id"] ?? 0);
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (seen === 3) return void response.flushHeaders();
    const message = { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: seen } };
    // An event with an id and empty data is a mark, and no message.
    response.end(`retry: 1\nid: ${seen}\ndata: \n\nid: ${seen + 1}\ndata: ${JSON.stringify(message)}\n\n`);
  });
  await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    http.close();
    http.closeAllConnections();
  });
  return (http.address() as AddressInfo).port;
}

test("a server that closes its stream is asked for what it has kept since", async (context) => {
  const { alpha } = await startServers(context, ["alpha"]);
  assert.ok(alpha);
  const polled = { ...alpha, port: await startPolledServer(context) };
  const gateway = await startMcp(context, { alpha, polled });
  const seen: unknown[] = [];
  const all = Promise.withResolvers<void>();
  await connectMcp(context, `${gateway.url()}/mcp`, (each) =>
    each.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      if (seen.push(params.data) === 3) all.resolve();
    }),
  );
  await expectEvent(context, all.promise, "all messages");
  assert.deepEqual(seen, [0, 1, 2]);
});
