/** A small agent of the Agent2Agent protocol 1.0 that repeats what it is told, over JSON-RPC, whole and as a stream. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Call {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: { readonly message?: { readonly parts?: readonly { readonly text?: string }[] } };
}

const METHOD_NOT_FOUND = -32_601;
const PARSE_ERROR = -32_700;

/** @param port 0 for any */
export async function startEchoAgent(port: number): Promise<Server> {
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return server;
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url === "/.well-known/agent-card.json") return sendJson(response, cardOf(request));
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += String(chunk);
  const call = readCall(body);
  if (call === undefined) return sendJson(response, errorOf(undefined, PARSE_ERROR, "not JSON"));
  const { id, method, params } = call;
  const text = (params?.message?.parts ?? []).map((part) => part.text ?? "").join("");
  const resultOf = (result: object): object => ({ jsonrpc: "2.0", id, result });
  if (method === "SendMessage") return sendJson(response, resultOf({ message: messageOf(text) }));
  if (method !== "SendStreamingMessage") return sendJson(response, errorOf(id, METHOD_NOT_FOUND, "method not found"));
  response.setHeader("content-type", "text/event-stream");
  response.end(`data: ${JSON.stringify(resultOf({ message: messageOf(text) }))}\n\n`);
}

/** The card lists the agent's own address, which clients of the gateway never see. */
function cardOf({ socket }: IncomingMessage): object {
  // A socket of a TCP server has such an address.
  const { port } = socket.address() as AddressInfo;
  return {
    name: "echo",
    description: "Repeats what it is told.",
    version: "1.0.0",
    supportedInterfaces: [{ url: `http://127.0.0.1:${port}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "echo", name: "Echo", description: "Repeats what it is told.", tags: ["echo"] }],
  };
}

function messageOf(text: string): object {
  return { messageId: randomUUID(), role: "ROLE_AGENT", parts: [{ text: `You said: ${text}` }] };
}

function readCall(body: string): Call | undefined {
  try {
    return JSON.parse(body) as Call; // an example; members of another type lead to an empty text
  } catch {
    return undefined;
  }
}

function errorOf(id: unknown, code: number, message: string): object {
  return { jsonrpc: "2.0", id: id ?? null, error: { code, message } };
}

function sendJson(response: ServerResponse, value: object): void {
  response.setHeader("content-type", "application/json");
  response.end(`${JSON.stringify(value)}\n`);
}
