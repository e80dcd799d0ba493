/** What the body streams of streamed responses share: scanned-stream.ts and translated-stream.ts. */
import { PROXY_ERRORS, ProxyError } from "../../exchange/errors.ts";
import type { VendorError } from "../conversation/events.ts";
import type { Ledger } from "../call/ledger.ts";
import { serverSentEvents, type Framing, type OnEvent, type StreamParser } from "./framing.ts";

export interface StreamContext {
  readonly ledger: Ledger;
  readonly maxEventBytes: number;
  /** Framing of the provider's events; server-sent events when absent. */
  readonly framing?: Framing;
}

export function parserOf(
  { framing = serverSentEvents, maxEventBytes }: StreamContext,
  onEvent: OnEvent,
  onTooLong: "throw" | "skip" = "throw",
): StreamParser {
  return framing(maxEventBytes, onEvent, onTooLong);
}

/** Tells whether the data closes a stream of chat completions. It is no JSON, and clients only look at its beginning. */
export function isDone(data: string): boolean {
  return data.startsWith("[DONE]");
}

/** What is wrong with a stream whose first event is an error: there is time for a status, and for a retry. */
export const BEGINS_WITH_ERROR = "the stream begins with an error";

/** Returns what a client is told in the middle of a stream that broke. */
export function readStreamError(error: Error): VendorError {
  const message = error instanceof ProxyError ? error.text : PROXY_ERRORS.upstream_broken.text;
  return { message, type: "api_error" };
}
