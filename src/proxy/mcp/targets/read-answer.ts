/**
 * Reads the HTTP answer of an MCP target: JSON, a stream of events, an acceptance, or an error that is passed on. What
 * is none of these is an internal error; redirects are never followed, because they could lead anywhere.
 */
import { HeaderList } from "../../../lib/header-list.ts";
import type { BodyStream } from "../../exchange/body.ts";
import { collect } from "../../exchange/collect.ts";
import { discard } from "../../exchange/discard.ts";
import { codingOf, unpackStream } from "../../exchange/content-coding.ts";
import type { UpstreamResponse } from "../../upstream/upstream.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import { EventMessages } from "./event-messages.ts";
import { toMcpError } from "./send-call.ts";
import type { McpAnswer } from "./target.ts";

/** An answer that was read as far as its kind is known. */
export type TargetAnswer =
  | { readonly kind: "accepted" }
  | { readonly kind: "message"; readonly message: Message; readonly headers: HeaderList }
  | { readonly kind: "events"; readonly events: EventMessages; readonly headers: HeaderList }
  | { readonly kind: "refused"; readonly status: number; readonly headers: HeaderList; readonly body: Buffer };

/** @throws McpError, ProxyError */
export async function readAnswer(response: UpstreamResponse, limitBytes: number): Promise<TargetAnswer> {
  const { status, headers } = response;
  const body = decodedBody(response);
  const type = (headers.get("content-type") ?? "").toLowerCase();
  if (status >= 400) return { kind: "refused", status, headers, body: await readWhole(body, limitBytes) };
  if (status === 202 || status === 204) {
    discard({ status, headers, body, upstream: true });
    return { kind: "accepted" };
  }
  if (status < 200 || status >= 300) {
    discard({ status, headers, body, upstream: true });
    throw unusable(`it answered with status ${status}`);
  }
  if (type.startsWith("text/event-stream") && body !== null)
    return { kind: "events", events: new EventMessages(body, limitBytes), headers };
  if (!type.startsWith("application/json")) {
    discard({ status, headers, body, upstream: true });
    throw unusable("it answered with neither JSON nor events");
  }
  const bytes = await readWhole(body, limitBytes);
  // Some servers answer notifications with the JSON of nothing.
  if (bytes.length === 0 || bytes.equals(NULL)) return { kind: "accepted" };
  const message = readMessage(bytes);
  if ("code" in message) throw unusable(message.reason);
  return { kind: "message", message, headers };
}

const NULL = Buffer.from("null");

/** @throws McpError for an unknown content coding */
export function decodedBody({ headers, body }: UpstreamResponse): BodyStream | null {
  if (body === null) return null;
  const coding = codingOf(headers.getAll("content-encoding").join(","));
  if (coding === null) return body;
  if (coding !== undefined) return unpackStream(body, coding, "response_invalid");
  body.destroy();
  throw unusable("its answer has an unknown content coding");
}

async function readWhole(body: BodyStream | null, limitBytes: number): Promise<Buffer> {
  if (body === null) return Buffer.alloc(0);
  try {
    const bytes = await collect(body, limitBytes);
    if (bytes !== undefined) return bytes;
  } catch (error) {
    throw toMcpError(error);
  }
  throw new McpError(ERROR_CODES.internal, "a message of the server is too large", { status: 500 });
}

/** @param reason for the log; it is not told to clients */
function unusable(reason: string): McpError {
  return new McpError(ERROR_CODES.internal, "the answer of the server cannot be used", { status: 500, detail: reason });
}

/** Makes the answer of an error with the body of the target, which is passed on as it is. */
export function passOn({ status, headers, body }: Extract<TargetAnswer, { kind: "refused" }>): McpAnswer {
  return { status, headers: keptHeaders(headers), only: undefined, messages: NO_MESSAGES, body, cancel: doNothing };
}

/** Makes an answer of one message. */
export function answerWith(message: Message): McpAnswer {
  const only = message;
  return { status: 200, headers: new HeaderList(), only, messages: [only], body: undefined, cancel: doNothing };
}

/** The answer to notifications and responses. */
export function accepted(): McpAnswer {
  const headers = new HeaderList();
  return { status: 202, headers, only: undefined, messages: NO_MESSAGES, body: undefined, cancel: doNothing };
}

function doNothing(): void {
  // There is nothing to stop: the answer has been read.
}

const NO_MESSAGES: readonly Message[] = [];

/** Headers of a refusal that mean something to the client: what the body is, and how to be let in. */
const KEPT = ["content-type", "www-authenticate", "retry-after"];

function keptHeaders(headers: HeaderList): HeaderList {
  const kept = new HeaderList();
  for (const name of KEPT) for (const value of headers.getAll(name)) kept.add(name, value);
  return kept;
}
