/**
 * Reads JSON-RPC 2.0 messages of MCP from bytes: the envelope only, with the positions of what it holds. Clients' bodies
 * and targets' answers are read here before anything else looks at them; `spans.ts` and `splice.ts` then read and change
 * members in place.
 */
import { isUtf8 } from "node:buffer";
import { isNameAt } from "./member-cursor.ts";
import { NOT_JSON, skipMembers, skipSpace, skipValue, TOO_DEEP, type OnMember } from "./scan.ts";
import { eachElement, readString, type Span } from "./spans.ts";

/** One JSON-RPC message as bytes; members are found by scanning, never by parsing the whole. */
export interface Message {
  /** UTF-8 JSON text of the object. */
  readonly bytes: Buffer;
  readonly kind: "request" | "notification" | "result" | "error";
  /**
   * JSON text of the id, `7` or `"a"`, for comparison as text; escapes in it are in their shortest form. An error may
   * have none (JSON-RPC 2.0 §5).
   */
  readonly id: string | undefined;
  readonly method: string | undefined;
  /** Position of the object. */
  readonly whole: Span;
  /** Position of `params`, `result` or `error`; undefined when a request or notification has no params. */
  readonly payload: Span | undefined;
}

/** Why bytes are not a message: no JSON, or JSON that is no message of JSON-RPC 2.0. */
export interface MessageFault {
  readonly code: "parse_error" | "invalid_request";
  readonly reason: string;
  /** The id as JSON text where one could be read. */
  readonly id: string | undefined;
}

/** The messages of a body. */
export interface Messages {
  readonly list: readonly Message[];
  /** True when the body is a list, which only 2025-03-26 knows. */
  readonly isBatch: boolean;
}

const MAX_ID_BYTES = 1_024;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/** Reads a body: one message, or a batch of them. */
export function readMessages(bytes: Buffer): Messages | MessageFault {
  if (!isUtf8(bytes)) return { code: "parse_error", reason: "the message is not UTF-8", id: undefined };
  const start = skipSpace(bytes, 0);
  // The envelope is found while the text is checked: a list of tools is long enough to be passed once less.
  const found: Envelope = {};
  const isObject = bytes[start] === OPEN_BRACE;
  const end = isObject
    ? skipMembers(bytes, start, (...member) => noteMember(found, bytes, member))
    : skipValue(bytes, start);
  const fault = checkEnd(bytes, end);
  if (fault !== undefined) return fault;
  const whole = { start, end };
  if (isObject || bytes[start] !== OPEN_BRACKET) {
    const message = readEnvelope(bytes, whole, found);
    return "code" in message ? message : { list: [message], isBatch: false };
  }
  return readBatch(bytes, whole);
}

function readBatch(bytes: Buffer, whole: Span): Messages | MessageFault {
  const list: Message[] = [];
  for (const { start, end } of eachElement(bytes, whole)) {
    const part = bytes.subarray(start, end);
    const found: Envelope = {};
    if (part[0] === OPEN_BRACE) skipMembers(part, 0, (...member) => noteMember(found, part, member));
    const message = readEnvelope(part, { start: 0, end: part.length }, found);
    if ("code" in message) return { ...message, id: undefined };
    list.push(message);
  }
  return list.length === 0 ? invalid("the batch is empty", undefined) : { list, isBatch: true };
}

/** Reads one message. */
export function readMessage(bytes: Buffer): Message | MessageFault {
  const messages = readMessages(bytes);
  if ("code" in messages) return messages;
  const [message] = messages.list;
  return messages.isBatch || message === undefined ? invalid("a batch is not a message", undefined) : message;
}

function checkEnd(bytes: Buffer, end: number): MessageFault | undefined {
  if (end === TOO_DEEP) return invalid("the message is nested too deeply", undefined);
  if (end === NOT_JSON || skipSpace(bytes, end) !== bytes.length)
    return { code: "parse_error", reason: "the message is not JSON", id: undefined };
  return undefined;
}

function invalid(reason: string, id: string | undefined): MessageFault {
  return { code: "invalid_request", reason, id };
}

/** The members of the envelope. */
type Envelope = Partial<Record<(typeof NAMES)[number], Span>>;

const NAMES = ["jsonrpc", "id", "method", "params", "result", "error"] as const;

function readEnvelope(bytes: Buffer, whole: Span, found: Envelope): Message | MessageFault {
  if (bytes[whole.start] !== OPEN_BRACE) return invalid("a message is an object", undefined);
  const id = found.id === undefined ? undefined : readId(bytes, found.id);
  const isNull = found.id !== undefined && bytes[found.id.start] === 0x6e;
  if (found.id !== undefined && id === undefined && !(isNull && found.error !== undefined))
    return invalid("id must be a string or an integer", undefined);
  if (found.jsonrpc === undefined || readString(bytes, found.jsonrpc) !== "2.0")
    return invalid('jsonrpc must be "2.0"', id);
  if (found.method === undefined) return readResponse(bytes, whole, found, id);
  const method = readString(bytes, found.method);
  if (method === undefined) return invalid("method must be a string", id);
  if (found.result !== undefined || found.error !== undefined)
    return invalid("a request has neither result nor error", id);
  const { params } = found;
  if (params !== undefined && bytes[params.start] !== OPEN_BRACE) return invalid("params must be an object", id);
  const kind = found.id === undefined ? "notification" : "request";
  return { bytes, kind, id, method, whole, payload: params };
}

function readResponse(bytes: Buffer, whole: Span, { result, error }: Envelope, id: string | undefined) {
  if ((result === undefined) === (error === undefined))
    return invalid("a message has either method, result or error", id);
  if (error !== undefined && bytes[error.start] !== OPEN_BRACE) return invalid("error must be an object", id);
  if (result !== undefined && id === undefined) return invalid("a result has an id", undefined);
  const kind = error === undefined ? "result" : "error";
  return { bytes, kind, id, method: undefined, whole, payload: error ?? result } as const;
}

/** Of equal names the last one counts, as for JSON.parse. */
function noteMember(found: Envelope, bytes: Buffer, [nameStart, nameEnd, start, end]: Parameters<OnMember>): void {
  for (const name of NAMES) if (isNameAt(bytes, nameStart, nameEnd, name)) found[name] = { start, end };
}

/** Returns the id in the form in which ids are compared; undefined when it is neither a string nor an integer. */
function readId(bytes: Buffer, span: Span): string | undefined {
  if (span.end - span.start > MAX_ID_BYTES) return undefined;
  const text = bytes.toString("utf8", span.start, span.end);
  if (text.startsWith('"')) return text.includes("\\") ? JSON.stringify(JSON.parse(text)) : text;
  return /^-?\d+$/.test(text) ? text : undefined;
}
