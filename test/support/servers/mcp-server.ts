/**
 * An MCP server of the official SDK (1.x) over Streamable HTTP, with tools, prompts and resources that tests call, and a
 * record of what reached it.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport, type EventStore } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { SetLevelRequestSchema, SubscribeRequestSchema, type JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import type { ProofContext } from "../proofs/prove.ts";

interface ReceivedCall {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Messages of the body; empty without one. */
  readonly messages: readonly (JSONRPCMessage & { readonly method?: string })[];
}

export interface TestMcpServer {
  readonly port: number;
  /** HTTP requests, oldest first. */
  readonly calls: readonly ReceivedCall[];
  /** Methods of the messages that arrived, oldest first. */
  methods(): string[];
  /** Ids of the sessions that are open. */
  sessions(): string[];
  /** Forgets all sessions, as a restart would. */
  forgetSessions(): void;
  /** The server behind each open session. */
  servers(): McpServer[];
}

export interface McpServerOptions {
  readonly name?: string;
  /** Issues no session ids. */
  readonly hasNoSessions?: boolean;
  /** Refuses new sessions while it returns true. */
  readonly refusesSessions?: () => boolean;
  /** Answers with JSON where it can. */
  readonly answersJson?: boolean;
  /** Makes the server of each session in place of the usual one. */
  readonly create?: () => McpServer;
  /** Keeps events, so that streams can be resumed, after a second. */
  readonly eventStore?: EventStore;
  /** Refuses requests of foreign pages, for which it returns true. */
  readonly refuses?: (headers: IncomingHttpHeaders) => boolean;
  /** Adds tools and the like to the server of each session. */
  readonly configure?: (server: McpServer) => void;
}

export async function startMcpServer(
  context: Pick<ProofContext, "after">,
  options: McpServerOptions = {},
): Promise<TestMcpServer> {
  const calls: ReceivedCall[] = [];
  const open = new Map<string, { transport: StreamableHTTPServerTransport; server: McpServer }>();
  const http = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await bodyOf(request);
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    const messages = (body === undefined ? [] : Array.isArray(body) ? body : [body]) as ReceivedCall["messages"];
    if (options.refuses?.(request.headers) === true) {
      response.writeHead(403).end();
      return;
    }
    calls.push({ method: request.method ?? "", path: request.url ?? "", headers: request.headers, messages });
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? open.get(id) : undefined;
    if (known !== undefined) return known.transport.handleRequest(request, response, body);
    if (id !== undefined) {
      response.writeHead(404, { "content-type": "application/json" });
      response.end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}');
      return;
    }
    if (options.refusesSessions?.() === true) {
      response.writeHead(503).end();
      return;
    }
    const server = options.create?.() ?? createTestServer(options);
    const transport = new StreamableHTTPServerTransport({
      ...(options.hasNoSessions === true ? {} : { sessionIdGenerator: () => randomUUID() }),
      ...(options.eventStore === undefined ? {} : { eventStore: options.eventStore, retryInterval: 1_000 }),
      enableJsonResponse: options.answersJson === true,
      onsessioninitialized: (started) => void open.set(started, { transport, server }),
      onsessionclosed: (ended) => void open.delete(ended),
    });
    await server.connect(transport as Parameters<McpServer["connect"]>[0]);
    await transport.handleRequest(request, response, body);
  }

  await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    http.close();
    http.closeAllConnections();
  });
  return {
    port: (http.address() as AddressInfo).port,
    calls,
    methods: () => calls.flatMap(({ messages }) => messages.map(({ method }) => method ?? "response")),
    sessions: () => [...open.keys()],
    forgetSessions: () => open.clear(),
    servers: () => [...open.values()].map(({ server }) => server),
  };
}

export function createTestServer({ name = "test", configure }: McpServerOptions): McpServer {
  const server = new McpServer(
    { name, version: "1.0.0" },
    { capabilities: { logging: {}, resources: { subscribe: true } }, instructions: `instructions of ${name}` },
  );
  server.registerTool("echo", { description: "echoes", inputSchema: { text: z.string() } }, ({ text }) => ({
    content: [{ type: "text", text: `${name}: ${text}` }],
  }));
  server.registerTool("count", { inputSchema: { to: z.number() } }, async ({ to }, extra) => {
    const token = extra._meta?.progressToken;
    for (let progress = 1; progress <= to; progress++)
      if (token !== undefined)
        await extra.sendNotification({
          method: "notifications/progress",
          params: { progressToken: token, progress, total: to },
        });
    return { content: [{ type: "text", text: `counted to ${to}` }] };
  });
  server.registerTool("ask", { inputSchema: {} }, async (_input, extra) => {
    const roots = await extra.sendRequest(
      { method: "roots/list" },
      z.object({ roots: z.array(z.object({ uri: z.string() })) }),
    );
    return { content: [{ type: "text", text: roots.roots.map(({ uri }) => uri).join(" ") }] };
  });
  server.registerPrompt("greet", { argsSchema: { who: z.string() } }, ({ who }) => ({
    messages: [{ role: "user", content: { type: "text", text: `hello ${who} from ${name}` } }],
  }));
  server.registerResource("note", `note://${name}/1`, {}, (uri) => ({
    contents: [{ uri: uri.href, text: `note of ${name}` }],
  }));
  server.registerResource("page", new ResourceTemplate(`page://${name}/{id}`, { list: undefined }), {}, (uri) => ({
    contents: [{ uri: uri.href, text: "page" }],
  }));
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(SetLevelRequestSchema, () => ({}));
  configure?.(server);
  return server;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
