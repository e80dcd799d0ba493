/** Servers of the official SDKs that offer what the conformance suite expects, one for each era of the protocol. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createMcpHandler, ResourceNotFoundError, Server } from "@modelcontextprotocol/server";
import { InMemoryEventStore } from "@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
  type ServerNotification,
  type ServerRequest,
} from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";
import { HANDLERS, type Handler, type Method, type Params } from "./fixtures.ts";

const INFO = { name: "conformance", version: "1.0.0" };

const SCHEMAS = {
  "tools/list": ListToolsRequestSchema,
  "tools/call": CallToolRequestSchema,
  "prompts/list": ListPromptsRequestSchema,
  "prompts/get": GetPromptRequestSchema,
  "resources/list": ListResourcesRequestSchema,
  "resources/templates/list": ListResourceTemplatesRequestSchema,
  "resources/read": ReadResourceRequestSchema,
  "completion/complete": CompleteRequestSchema,
} as const;

/** Starts a server of versions with sessions, of the SDK 1.x; returns its port. */
export async function startSessionServer(context: Pick<ProofContext, "after">): Promise<number> {
  const eventStore = new InMemoryEventStore();
  const { port } = await startMcpServer(context, { create: createSessionServer, eventStore });
  return port;
}

function createSessionServer(): McpServer {
  const capabilities = { logging: {}, tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} };
  const server = new McpServer(INFO, { capabilities });
  for (const [method, schema] of Object.entries(SCHEMAS)) {
    const handle = HANDLERS[method as Method]; // both tables have the same methods
    server.server.setRequestHandler(schema, async (request, extra) => {
      const result = await handle(request.params ?? {}, {
        progressToken: extra._meta?.progressToken,
        notify: (name, params) => extra.sendNotification({ method: name, params } as ServerNotification),
        ask: (name, params) => extra.sendRequest({ method: name, params } as ServerRequest, z.looseObject({})),
        closeStream: () => extra.closeSSEStream?.(),
      });
      if (result === undefined) throw new Error("there is none");
      return result as Record<string, unknown>; // an object of a fixture
    });
  }
  for (const schema of [SetLevelRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema])
    server.server.setRequestHandler(schema, () => ({}));
  return server;
}

/** Starts a server of 2026-07-28, of the SDK 2.x; returns its port. */
export async function startRequestServer(context: Pick<ProofContext, "after">): Promise<number> {
  const handler = createMcpHandler(createRequestServer, { legacy: "reject" });
  const http = createServer((request, response) => {
    answer(handler.fetch, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
  context.after(async () => {
    await handler.close();
    http.close();
    http.closeAllConnections();
  });
  return (http.address() as AddressInfo).port; // a TCP server has such an address
}

async function answer(
  fetch: (request: Request) => Promise<Response>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const aborted = new AbortController();
  response.on("close", () => aborted.abort());
  const headers = Object.entries(request.headers).map(([key, value]): [string, string] => [key, String(value)]);
  const reply = await fetch(
    new Request(`http://127.0.0.1${request.url}`, {
      method: request.method ?? "POST",
      headers,
      signal: aborted.signal,
      ...(request.method === "POST" ? { body: Readable.toWeb(request) as BodyInit, duplex: "half" } : {}),
    } as RequestInit),
  );
  response.writeHead(reply.status, Object.fromEntries(reply.headers));
  response.flushHeaders();
  if (reply.body === null) response.end();
  else await pipeline(Readable.fromWeb(reply.body as Parameters<typeof Readable.fromWeb>[0]), response);
}

function createRequestServer(): Server {
  const server = new Server(INFO, { capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} } });
  for (const [method, handle] of Object.entries(HANDLERS) as [Method, Handler][])
    server.setRequestHandler(method, async (request, context): Promise<never> => {
      const params = (request.params ?? {}) as Params;
      const result = await handle(params, {
        progressToken: context.mcpReq._meta?.progressToken,
        notify: (name, members) => context.mcpReq.notify({ method: name, params: members }),
        ask: () => Promise.reject(new Error("a server of this version returns what it asks")),
        closeStream: () => undefined,
      });
      if (result === undefined) throw new ResourceNotFoundError(String(params["uri"] ?? params["name"]));
      return result as never; // an object of a fixture, of the type that the method has
    });
  return server;
}
