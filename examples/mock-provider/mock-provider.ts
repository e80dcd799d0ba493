/**
 * A small LLM provider to practise with: chat completions and messages, plain and streamed, on loopback. It is as strict
 * as a real one about keys, headers and bodies, and its answers follow fixed rules.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { printCompletion, readCompletions, streamCompletion } from "./completions.ts";
import { printMessage, readMessages, streamMessage } from "./messages.ts";
import { BadRequest, readBody, type Fields } from "./read.ts";

export interface MockProviderOptions {
  /** 0: any free port. */
  readonly port: number;
  /** Keys that are let in. */
  readonly keys: readonly string[];
}

export interface MockProvider {
  readonly port: number;
  /** Requests that were answered with 2xx. */
  readonly served: () => number;
  stop(): Promise<void>;
}

interface Dialect {
  key(request: IncomingMessage): string | undefined;
  serve(body: Fields, response: ServerResponse): void;
  error(status: number, message: string): object;
}

export async function serveMockProvider({ port, keys }: MockProviderOptions): Promise<MockProvider> {
  const allowed = new Set(keys);
  let served = 0;
  const server = createServer((request, response) => {
    response.on("finish", () => (served += response.statusCode < 300 ? 1 : 0));
    void handle(request, response, allowed);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    // A TCP server that listens has an address with a port.
    port: (server.address() as AddressInfo).port,
    served: () => served,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function handle(request: IncomingMessage, response: ServerResponse, keys: ReadonlySet<string>): Promise<void> {
  const path = (request.url ?? "").split("?")[0];
  const dialect = path === "/v1/messages" ? MESSAGES : COMPLETIONS;
  try {
    const known = path === "/v1/messages" || path === "/v1/chat/completions";
    if (!known || request.method !== "POST") throw new BadRequest(`no such endpoint: ${request.method} ${path}`, 404);
    const key = dialect.key(request);
    if (key === undefined || !keys.has(key)) throw new BadRequest("invalid key", 401);
    dialect.serve(await readBody(request), response);
  } catch (error) {
    const status = error instanceof BadRequest ? error.status : 500;
    const message = error instanceof BadRequest ? error.message : "internal error";
    if (response.headersSent) response.destroy();
    else sendJson(response, status, dialect.error(status, message));
  }
}

const COMPLETIONS: Dialect = {
  key: (request) => /^Bearer (\S+)$/.exec(request.headers.authorization ?? "")?.[1],
  serve(body, response) {
    const conversation = readCompletions(body);
    const id = idOf(body);
    if (!conversation.stream) return sendJson(response, 200, printCompletion(conversation, id));
    const options = body["stream_options"] as { include_usage?: unknown } | undefined;
    startStream(response);
    for (const data of streamCompletion(conversation, id, options?.include_usage === true))
      response.write(`data: ${data}\n\n`);
    response.end();
  },
  error: (status, message) => ({
    error: {
      message,
      type: status === 401 ? "authentication_error" : "invalid_request_error",
      param: null,
      code: status === 401 ? "invalid_api_key" : null,
    },
  }),
};

const MESSAGES: Dialect = {
  key(request) {
    if (request.headers["anthropic-version"] !== "2023-06-01")
      throw new BadRequest("anthropic-version: header is required");
    if (request.headers["authorization"] !== undefined) throw new BadRequest("two kinds of credentials", 401);
    const key = request.headers["x-api-key"];
    return typeof key === "string" ? key : undefined;
  },
  serve(body, response) {
    const conversation = readMessages(body);
    const id = idOf(body);
    if (!conversation.stream) return sendJson(response, 200, printMessage(conversation, id));
    startStream(response);
    for (const event of streamMessage(conversation, id))
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  },
  error(status, message) {
    const types: Readonly<Record<number, string>> = { 401: "authentication_error", 404: "not_found_error" };
    return { type: "error", error: { type: types[status] ?? "invalid_request_error", message } };
  },
};

/** The same request always gets the same id. */
function idOf(body: Fields): string {
  return createHash("sha256").update(JSON.stringify(body)).digest("hex").slice(0, 16);
}

function startStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
