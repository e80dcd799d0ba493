/**
 * Framings of streamed answers by their media type. The body streams read each of them. A translated stream always leaves
 * as server-sent events.
 */
import { EventStreamParser } from "./event-stream.ts";
import { SseParser } from "./sse.ts";

export interface StreamParser {
  /** @throws ProxyError llm_response_invalid */
  push(chunk: Buffer): void;
  /** @throws ProxyError llm_response_invalid */
  end(): void;
}

/**
 * @param data of one event, as latin1
 * @param type name of the event where the framing carries one, otherwise ""
 */
export type OnEvent = (data: string, type: string) => void;

/**
 * Returns a parser for one stream.
 * @param onTooLong whether an event that is too long ends the parsing or is left out, in framings that find the next one
 */
export type Framing = (maxEventBytes: number, onEvent: OnEvent, onTooLong: "throw" | "skip") => StreamParser;

export const serverSentEvents: Framing = (maxEventBytes, onEvent, onTooLong) =>
  new SseParser(maxEventBytes, (data) => onEvent(data, ""), onTooLong);

interface FramingRow {
  /** Matches the media type, with or without parameters. */
  readonly type: RegExp;
  readonly framing: Framing;
}

const FRAMINGS: readonly FramingRow[] = [
  { type: /^\s*text\/event-stream\s*(?:;|$)/i, framing: serverSentEvents },
  {
    type: /^\s*application\/vnd\.amazon\.eventstream\s*(?:;|$)/i,
    framing: (maxEventBytes, onEvent) => new EventStreamParser(maxEventBytes, onEvent),
  },
];

/** @param contentType value of Content-Type @returns undefined for a body that is not a stream of events */
export function framingOf(contentType: string): Framing | undefined {
  return FRAMINGS.find(({ type }) => type.test(contentType))?.framing;
}
