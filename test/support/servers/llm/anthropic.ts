/**
 * A strict Anthropic on a real socket: the Messages API. It verifies method, path, version, credential and body, and
 * answers what a test has set, as JSON or as named server-sent events.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../../proofs/prove.ts";
import { findMessagesFault } from "./anthropic-checks.ts";
import type { OpenAiAnswer } from "./openai-answers.ts";

type Fields = Record<string, unknown>;

export const ANTHROPIC_KEY = "sk-ant-of-the-test";

export interface AnthropicServer {
  readonly port: number;
  /** Requests that were in order, oldest first. */
  readonly seen: { readonly path: string; readonly headers: IncomingMessage["headers"]; readonly body: Fields }[];
  /** Sets the answer to the next requests, in the same neutral words as for the OpenAI server. */
  answer: OpenAiAnswer;
}

export async function startAnthropic(context: Pick<ProofContext, "after">): Promise<AnthropicServer> {
  const anthropic: AnthropicServer & { port: number } = { port: 0, seen: [], answer: {} };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => serve(anthropic, request, Buffer.concat(chunks), response));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  anthropic.port = (server.address() as AddressInfo).port; // it listens on a port
  return anthropic;
}

function serve(anthropic: AnthropicServer, request: IncomingMessage, bytes: Buffer, response: ServerResponse): void {
  const { method, url = "", headers } = request;
  const path = url.split("?", 1)[0] ?? "";
  if (method !== "POST" || !/^(?:\/anthropic)?\/v1\/messages$/.test(path))
    return refuse(response, 404, "not_found_error", `Not found: ${method} ${path}`);
  const isKnown = headers["x-api-key"] === ANTHROPIC_KEY || headers.authorization === `Bearer ${ANTHROPIC_KEY}`;
  if (!isKnown || (headers["x-api-key"] !== undefined && headers.authorization !== undefined))
    return refuse(response, 401, "authentication_error", "invalid x-api-key");
  if (!/^20\d\d-\d\d-\d\d$/.test(String(headers["anthropic-version"])))
    return refuse(response, 400, "invalid_request_error", "anthropic-version: header is required");
  const body = parse(bytes);
  const fault = body === undefined ? "the body is not a JSON object" : findMessagesFault(body);
  if (body === undefined || fault !== undefined)
    return refuse(response, 400, "invalid_request_error", fault ?? "unreadable");
  anthropic.seen.push({ path, headers, body });
  const { answer } = anthropic;
  for (const [name, value] of Object.entries(answer.error?.headers ?? {})) response.setHeader(name, value);
  if (answer.error !== undefined) return refuse(response, answer.error.status, answer.error.type, answer.error.message);
  if (body["stream"] !== true) return send(response, 200, printMessage(answer, body["model"]));
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  for (const event of streamMessage(answer, body["model"]))
    response.write(`event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}

function parse(bytes: Buffer): Fields | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

function refuse(response: ServerResponse, status: number, type: string, message: string): void {
  send(response, status, { type: "error", error: { type, message }, request_id: "req_1" });
}

function send(response: ServerResponse, status: number, body: Fields): void {
  response.writeHead(status, { "content-type": "application/json", "request-id": "req_1" }).end(JSON.stringify(body));
}

const USAGE = {
  input_tokens: 12,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 8,
  service_tier: "standard",
};

function blocksOf({ reasoning, text, refusal, calls = [] }: OpenAiAnswer): Fields[] {
  const said = text ?? refusal;
  return [
    ...(reasoning === undefined ? [] : [{ type: "thinking", thinking: reasoning.text, signature: reasoning.sealed }]),
    ...(said === undefined ? [] : [{ type: "text", text: said, citations: null }]),
    ...calls.map(({ id, name, arguments: given }) => ({
      type: "tool_use",
      id,
      name,
      input: JSON.parse(given) as Fields,
    })),
  ];
}

function stopOf({ calls, refusal, isCut }: OpenAiAnswer): string {
  if (isCut === true) return "max_tokens";
  if (refusal !== undefined) return "refusal";
  return calls === undefined ? "end_turn" : "tool_use";
}

export function printMessage(answer: OpenAiAnswer, model: unknown): Fields {
  return messageOf(model, blocksOf(answer), stopOf(answer), { ...USAGE, output_tokens: 7 });
}

function messageOf(model: unknown, content: readonly Fields[], stop: string | null, usage: Fields): Fields {
  return {
    id: "msg_01",
    type: "message",
    role: "assistant",
    model,
    content,
    stop_reason: stop,
    stop_sequence: null,
    stop_details: null,
    usage,
  };
}

/** Returns the events as the service sends them, with a ping and arguments in pieces after an empty one. */
export function streamMessage(answer: OpenAiAnswer, model: unknown): Fields[] {
  const message = messageOf(model, [], null, { ...USAGE, output_tokens: 1 });
  return [
    { type: "message_start", message },
    ...blocksOf(answer).flatMap((block, index) => [
      ...streamBlock(block, index),
      ...(index === 0 ? [{ type: "ping" }] : []),
    ]),
    {
      type: "message_delta",
      delta: { stop_reason: stopOf(answer), stop_sequence: null },
      usage: { ...USAGE, output_tokens: 7 },
    },
    { type: "message_stop" },
  ];
}

function streamBlock(block: Fields, index: number): Fields[] {
  const deltas = deltasOf(block).map((delta) => ({ type: "content_block_delta", index, delta }));
  const empty = { text: "", thinking: "", signature: "", input: {} };
  const kept = Object.entries(empty).filter(([name]) => name in block);
  return [
    { type: "content_block_start", index, content_block: { ...block, ...Object.fromEntries(kept) } },
    ...deltas,
    { type: "content_block_stop", index },
  ];
}

function deltasOf({ type, text, thinking, signature, input }: Fields): Fields[] {
  const pieces = (whole: unknown): string[] => String(whole).match(/[^]{1,4}/g) ?? [];
  switch (type) {
    case "text":
      return pieces(text).map((piece) => ({ type: "text_delta", text: piece }));
    case "thinking":
      return [
        ...pieces(thinking).map((piece) => ({ type: "thinking_delta", thinking: piece })),
        { type: "signature_delta", signature },
      ];
    default:
      return ["", ...pieces(JSON.stringify(input))].map((partial_json) => ({ type: "input_json_delta", partial_json }));
  }
}
