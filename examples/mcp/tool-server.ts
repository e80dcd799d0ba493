/** A small MCP server without sessions that has one tool without parameters, whose text a function returns. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly call: () => string;
}

interface Call {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: { readonly protocolVersion?: string; readonly name?: string };
}

const PARSE_ERROR = -32_700;
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;
const VERSION = "2025-11-25";

/** @param port 0 for any */
export async function startToolServer(port: number, tool: Tool): Promise<Server> {
  const server = createServer(
    (request, response) => void answer(request, response, tool).catch(() => response.destroy()),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return server;
}

async function answer(request: IncomingMessage, response: ServerResponse, tool: Tool): Promise<void> {
  if (request.method !== "POST") return void response.writeHead(405, { allow: "POST" }).end();
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += String(chunk);
  const call = readCall(body);
  if (call === undefined) return sendJson(response, { id: null, ...errorOf(PARSE_ERROR, "not JSON") });
  if (call.id === undefined) return void response.writeHead(202).end();
  sendJson(response, { id: call.id, ...outcomeOf(call, tool) });
}

function outcomeOf({ method, params }: Call, { name, description, call }: Tool): object {
  switch (method) {
    case "initialize":
      return {
        result: { protocolVersion: VERSION, capabilities: { tools: {} }, serverInfo: { name, version: "1.0.0" } },
      };
    case "ping":
      return { result: {} };
    case "tools/list":
      return { result: { tools: [{ name, description, inputSchema: { type: "object" } }] } };
    case "tools/call":
      if (params?.name !== name) return errorOf(INVALID_PARAMS, "unknown tool");
      return { result: { content: [{ type: "text", text: call() }] } };
    default:
      return errorOf(METHOD_NOT_FOUND, "method not found");
  }
}

function readCall(body: string): Call | undefined {
  try {
    return JSON.parse(body) as Call; // an example; members of another type lead to an error
  } catch {
    return undefined;
  }
}

function errorOf(code: number, message: string): object {
  return { error: { code, message } };
}

function sendJson(response: ServerResponse, message: object): void {
  response.setHeader("content-type", "application/json");
  response.end(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}
