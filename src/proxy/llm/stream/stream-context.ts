/** What the body streams of streamed responses share: scanned-stream.ts and translated-stream.ts. */
import { ProxyError } from "../../exchange/errors.ts";
import type { Ledger } from "../call/ledger.ts";
import { serverSentEvents, type Framing, type OnEvent, type StreamParser } from "./framing.ts";

export interface StreamContext {
  readonly ledger: Ledger;
  readonly maxEventBytes: number;
  /** Framing of the provider's events; server-sent events when absent. */
  readonly framing?: Framing;
}

export function parserOf({ framing = serverSentEvents, maxEventBytes }: StreamContext, onEvent: OnEvent): StreamParser {
  return framing(maxEventBytes, onEvent);
}

export function beginsWithError(): ProxyError {
  return new ProxyError("llm_response_invalid", { detail: "the stream begins with an error" });
}
