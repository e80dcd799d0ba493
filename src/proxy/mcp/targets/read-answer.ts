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
import { BATCH_VERSION } from "../versions.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessages, type Message } from "../message/message.ts";
import { EventMessages } from "./event-messages.ts";
import { toMcpError } from "./send-call.ts";
import type { McpAnswer } from "./target.ts";

/** An answer that was read as far as its kind is known. */
export type TargetAnswer =
  | { readonly kind: "accepted" }
  | {
      readonly kind: "message";
      readonly message: Message;
      /** What the server says before it responds. */
      readonly others: readonly Message[];
      readonly headers: HeaderList;
    }
  | { readonly kind: "events"; readonly events: EventMessages; readonly headers: HeaderList }
  | { readonly kind: "refused"; readonly status: number; readonly headers: HeaderList; readonly body: Buffer };

/** @param version of the request @throws McpError, ProxyError */
export async function readAnswer(
  response: UpstreamResponse,
  limitBytes: number,
  version: string,
): Promise<TargetAnswer> {
  const hasBatches = version === BATCH_VERSION;
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
    return { kind: "events", events: new EventMessages(body, { limitBytes, hasBatches }), headers };
  if (!type.startsWith("application/json")) {
    discard({ status, headers, body, upstream: true });
    throw unusable("it answered with neither JSON nor events");
  }
  const bytes = await readWhole(body, limitBytes);
  // Some servers answer notifications with the JSON of nothing.
  if (bytes.length === 0 || bytes.equals(NULL)) return { kind: "accepted" };
  const read = readMessages(bytes);
  if ("code" in read) throw unusable(read.reason);
  if (read.isBatch && !hasBatches) throw unusable("a batch is not a message");
  const { response: message, others } = splitBatch(read.list);
  if (message === undefined) throw unusable("a batch without a response");
  return { kind: "message", message, others, headers };
}

/** Tells the response from what a server says besides, in a batch of 2025-03-26. */
function splitBatch(list: readonly Message[]): { readonly response: Message | undefined; readonly others: Message[] } {
  if (list.length === 1) return { response: list[0], others: [] };
  const response = list.find(({ kind }) => kind === "result" || kind === "error");
  return { response, others: list.filter(({ kind }) => kind === "notification" || kind === "request") };
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

/** Makes an answer of messages that are known. @param others what the server says before it responds */
export function answerWith(message: Message, others: readonly Message[]): McpAnswer {
  const only = others.length === 0 ? message : undefined;
  const messages = [...others, message];
  return { status: 200, headers: new HeaderList(), only, messages, body: undefined, cancel: doNothing };
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
