/** Reads what an MCP client posts: checks its headers, holds the body and finds its messages. */
import type { HeaderList } from "../../../lib/header-list.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessages, type Message, type Messages } from "../message/message.ts";
import { BATCH_VERSION } from "../versions.ts";

const JSON_TYPE = "application/json";
const EVENT_TYPE = "text/event-stream";

export interface Post {
  readonly messages: readonly Message[];
  readonly isBatch: boolean;
  /** @throws McpError when the body is a batch and this version has none, or one that is too long */
  checkBatch(version: string): void;
}

/**
 * @param isAnswered whether the response holds the answer, of a type that the client must accept
 * @throws McpError with status 400, 406, 413 or 415; ProxyError when the client left
 */
export async function readPost(exchange: RoutedExchange, isAnswered = true): Promise<Post> {
  if (isAnswered) checkAccepted(exchange.requestHeaders);
  checkContent(exchange.requestHeaders);
  const body = await exchange.bufferRequestBody(exchange.requestLimitBytes);
  if (body === undefined) throw new McpError(ERROR_CODES.invalidRequest, "the message is too large", { status: 413 });
  const read = readMessages(body);
  if ("code" in read) {
    const code = read.code === "parse_error" ? ERROR_CODES.parseError : ERROR_CODES.invalidRequest;
    throw new InvalidMessage(code, read.reason, read.id);
  }
  const { list, isBatch } = read;
  return { messages: list, isBatch, checkBatch: (spoken) => checkBatch({ list, isBatch }, spoken) };
}

/** An error about a message of which only the id could be read. */
export class InvalidMessage extends McpError {
  readonly id: string | undefined;

  constructor(code: number, reason: string, id: string | undefined) {
    super(code, `Invalid message: ${reason}`, { status: 400 });
    this.id = id;
  }
}

/** @throws McpError with status 406 */
export function requireEventStream(headers: HeaderList): void {
  if (!accepted(headers).includes(EVENT_TYPE)) throw notAcceptable(`Accept must name ${EVENT_TYPE}`);
}

function checkAccepted(headers: HeaderList): void {
  const types = accepted(headers);
  if (!types.includes(JSON_TYPE) || !types.includes(EVENT_TYPE))
    throw notAcceptable(`Accept must name ${JSON_TYPE} and ${EVENT_TYPE}`);
}

function checkContent(headers: HeaderList): void {
  const type = (headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase();
  const coding = headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (type !== JSON_TYPE || coding !== "identity")
    throw new McpError(ERROR_CODES.invalidRequest, `Unsupported Media Type: Content-Type must be ${JSON_TYPE}`, {
      status: 415,
    });
}

function accepted(headers: HeaderList): string {
  return headers.getAll("accept").join(",").toLowerCase();
}

function notAcceptable(reason: string): McpError {
  return new McpError(ERROR_CODES.invalidRequest, `Not Acceptable: ${reason}`, { status: 406 });
}

/** Limits of requests count posts: one of them must not stand for thousands of calls. */
const MAX_BATCH = 100;

function checkBatch({ list, isBatch }: Messages, version: string): void {
  if (isBatch && version !== BATCH_VERSION) throw invalidBatch(`batches exist only in ${BATCH_VERSION}`);
  if (list.length > MAX_BATCH) throw invalidBatch(`a batch has at most ${MAX_BATCH} messages`);
}

function invalidBatch(reason: string): McpError {
  return new McpError(ERROR_CODES.invalidRequest, reason, { status: 400 });
}
