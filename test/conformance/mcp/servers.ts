/** Servers of the official SDKs that offer what the conformance suite expects, one for each era of the protocol. */
import { randomBytes } from "node:crypto";
import {
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  McpServer as RequestMcpServer,
  originValidationResponse,
  ResourceNotFoundError,
  validateHostHeader,
  validateOriginHeader,
  type ClientCapabilities,
  type McpHttpHandler,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { EventStore } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
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
  type JSONRPCMessage,
  type ServerNotification,
  type ServerRequest,
} from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";
import { serveHandler } from "../../support/servers/modern-mcp-server.ts";
import { createHandlers, OF_SESSIONS, type Handler, type Method, type Params } from "./fixtures.ts";
import { OF_REQUESTS, type RequestRunning } from "./request-fixtures.ts";

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
  const { port } = await startMcpServer(context, {
    create: createSessionServer,
    eventStore: createEventStore(),
    refuses: ({ host, origin }) =>
      !validateHostHeader(host, localhostAllowedHostnames()).ok ||
      !validateOriginHeader(origin, localhostAllowedOrigins()).ok,
  });
  return port;
}

/** The store of the SDK's examples sorts by a time and a random text, so that events of one millisecond change places. */
function createEventStore(): EventStore {
  const events: { readonly stream: string; readonly message: JSONRPCMessage }[] = [];
  return {
    storeEvent: (stream, message) => Promise.resolve(String(events.push({ stream, message }) - 1)),
    async replayEventsAfter(last, { send }) {
      const { stream } = events[Number(last)] ?? { stream: "" };
      for (const [id, event] of events.entries())
        if (id > Number(last) && event.stream === stream) await send(String(id), event.message);
      return stream;
    },
  };
}

function createSessionServer(): McpServer {
  const capabilities = { logging: {}, tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} };
  const server = new McpServer(INFO, { capabilities });
  const handlers = createHandlers(OF_SESSIONS);
  for (const [method, schema] of Object.entries(SCHEMAS)) {
    const handle = handlers[method as Method]; // both tables have the same methods
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

interface Envelope {
  readonly "io.modelcontextprotocol/clientCapabilities"?: ClientCapabilities;
}

/** Starts a server of 2026-07-28, of the SDK 2.x; returns its port. */
export async function startRequestServer(context: Pick<ProofContext, "after">): Promise<number> {
  const states = createRequestStateCodec({ key: randomBytes(32) });
  const handlers = createHandlers(OF_REQUESTS);
  const handler: McpHttpHandler = createMcpHandler(() => createRequestServer(), { legacy: "reject" });

  function createRequestServer(): RequestMcpServer {
    const listChanged = { listChanged: true };
    const capabilities = { tools: listChanged, prompts: listChanged, resources: {}, completions: {}, logging: {} };
    const server = new RequestMcpServer(INFO, { capabilities, requestState: { verify: states.verify } });
    // The SDK compares headers with arguments for tools that are registered; the handlers below then replace its own.
    for (const [name, schema] of Object.entries(OF_REQUESTS.schemas))
      server.registerTool(name, { inputSchema: fromJsonSchema(schema) }, () => ({ content: [] }));
    for (const [method, handle] of Object.entries(handlers) as [Method, Handler<RequestRunning>][])
      server.server.setRequestHandler(method, async (request, context): Promise<never> => {
        const params = (request.params ?? {}) as Params;
        const result = await handle(params, runningOf(context));
        if (result === undefined) throw new ResourceNotFoundError(String(params["uri"] ?? params["name"]));
        return result as never; // an object of a fixture, of the type that the method has
      });
    return server;
  }

  const runningOf = ({ mcpReq }: ServerContext): RequestRunning => ({
    progressToken: mcpReq._meta?.progressToken,
    notify: (name, members) => mcpReq.notify({ method: name, params: members }),
    // The type of the envelope does not name its members.
    capabilities: (mcpReq.envelope as Envelope | undefined)?.["io.modelcontextprotocol/clientCapabilities"] ?? {},
    answers: mcpReq.inputResponses,
    state: mcpReq.requestState(),
    seal: (payload) => states.mint(payload),
    log: (data) => mcpReq.log("info", data),
    announce: (list) => (list === "tools" ? handler.notify.toolsChanged() : handler.notify.promptsChanged()),
  });

  return serveHandler(context, {
    close: handler.close,
    fetch: async (request) =>
      hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
      originValidationResponse(request, localhostAllowedOrigins()) ??
      (await handler.fetch(request)),
  });
}
