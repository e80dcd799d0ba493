/**
 * Removes from a stream of chat completions the events that only report usage (`"choices":[]`), for clients that did not
 * ask for them. Whole events are passed on byte for byte; an event that is not complete yet waits for the rest.
 */
import { mayCarryUsage } from "./usage-hint.ts";
import { listOf, objectOf, parseObject } from "../shared/json.ts";

/** Matches the blank line that ends an event, in each notation of line ends. */
const EVENT_END = /\r\n\r\n|\n\n|\r\r/g;

export class UsageEventFilter {
  readonly #maxEventBytes: number;
  /** The event that is not complete yet, as latin1. */
  #open = "";

  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  /**
   * Returns what may go to the client now.
   * @param mayReport whether an event that ends in this piece may report usage
   */
  push(chunk: Buffer, mayReport: boolean): Buffer {
    // Most pieces are whole events without usage, and are passed on as they came.
    if (!mayReport && this.#open === "" && endsEvent(chunk)) return chunk;
    const text = this.#open + chunk.toString("latin1");
    let kept = "";
    let from = 0;
    for (const { index, 0: blank } of text.matchAll(EVENT_END)) {
      const event = text.slice(from, index + blank.length);
      if (!isUsageOnly(event)) kept += event;
      from = index + blank.length;
    }
    this.#open = text.slice(from);
    if (this.#open.length > this.#maxEventBytes) {
      kept += this.#open;
      this.#open = "";
    }
    return Buffer.from(kept, "latin1");
  }

  /** Returns what is left at the end of the stream. */
  end(): Buffer {
    const rest = isUsageOnly(this.#open) ? "" : this.#open;
    this.#open = "";
    return Buffer.from(rest, "latin1");
  }
}

const ENDS = [Buffer.from("\n\n"), Buffer.from("\r\n\r\n")];

function endsEvent(chunk: Buffer): boolean {
  return ENDS.some((end) => chunk.subarray(-end.length).equals(end));
}

function isUsageOnly(event: string): boolean {
  // Other events are not parsed.
  if (!mayCarryUsage(event)) return false;
  const data = event
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice("data:".length));
  const chunk = parseObject(Buffer.from(data.join("\n"), "latin1"));
  if (chunk === undefined || !Array.isArray(chunk["choices"])) return false;
  return listOf(chunk["choices"]).length === 0 && objectOf(chunk["usage"]) !== undefined;
}
