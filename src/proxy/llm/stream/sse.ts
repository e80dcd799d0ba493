/**
 * Incremental parser of server-sent events (WHATWG HTML §9.2.6), fed with bytes in any pieces. Lines end in LF, CR or
 * CRLF; comments, event names, `id` and `retry` are skipped; several data lines are joined by LF; one byte order mark
 * at the start is dropped. It works on latin1 text, one character per byte, because a view of the bytes for each line
 * would cost more than the parsing. A CR at the end of a piece may be half of a CRLF, so `#skipLineFeed` drops an LF
 * that follows.
 */
import { ProxyError } from "../../exchange/errors.ts";

/** @param data of one event, as latin1 */
export type OnEvent = (data: string) => void;

const DATA = "data";
const COMMENT = ":";
const BYTE_ORDER_MARK = "\u00ef\u00bb\u00bf";
const SPACE = 32;

export class SseParser {
  readonly #maxEventBytes: number;
  readonly #onEvent: OnEvent;
  readonly #onTooLong: "throw" | "skip";
  /** An event that is too long is left out up to its blank line. */
  #isSkipping = false;
  /** The line that is not complete yet. */
  #open = "";
  /** Data lines of the current event, joined by LF; undefined when there was none. */
  #data: string | undefined;
  #first = true;
  #skipLineFeed = false;
  /** Bytes of the chunks before the current one. */
  #receivedBytes = 0;
  #settledBytes = 0;

  /**
   * @param maxEventBytes limit of the memory for one event, with the incomplete line
   * @param onTooLong whether a longer event ends the parsing or is left out
   */
  constructor(maxEventBytes: number, onEvent: OnEvent, onTooLong: "throw" | "skip" = "throw") {
    this.#maxEventBytes = maxEventBytes;
    this.#onEvent = onEvent;
    this.#onTooLong = onTooLong;
  }

  /** Returns the bytes up to the end of the last blank line: no event that has begun reaches into them. */
  get settledBytes(): number {
    return this.#settledBytes;
  }

  /** @throws ProxyError llm_response_invalid when an event exceeds the limit */
  push(chunk: Buffer): void {
    this.pushText(chunk.toString("latin1"));
  }

  /**
   * Takes a chunk as latin1, for those who have it in that form.
   * @throws ProxyError llm_response_invalid when an event exceeds the limit
   */
  pushText(text: string): void {
    if (text === "") return;
    let at = this.#skipLineFeed && text.startsWith("\n") ? 1 : 0;
    this.#skipLineFeed = false;
    let lf = text.indexOf("\n", at);
    let cr = text.indexOf("\r", at);
    while (lf !== -1 || cr !== -1) {
      const end = lf === -1 || (cr !== -1 && cr < lf) ? cr : lf;
      const isBlank = at === end && this.#open === "";
      this.#ended(text, at, end);
      at = end + 1;
      if (end === cr) {
        if (at === text.length) this.#skipLineFeed = true;
        else if (end + 1 === lf) at++;
        cr = text.indexOf("\r", at);
      }
      if (lf !== -1 && lf < at) lf = text.indexOf("\n", at);
      if (isBlank) this.#settledBytes = this.#receivedBytes + at;
    }
    this.#receivedBytes += text.length;
    if (at === text.length) return;
    this.#limit(text.length - at);
    // Of a line that is left out only the fact that it is not blank has to be known.
    if (this.#isSkipping) this.#open = COMMENT;
    else this.#open += text.slice(at);
  }

  /** Ends the stream. An event without its closing blank line still counts. */
  end(): void {
    if (this.#open !== "") this.#ended("", 0, 0);
    this.#dispatch();
  }

  /** Handles the end of a line. @param text holds the rest of the line from `start` to `end` */
  #ended(text: string, start: number, end: number): void {
    if (this.#open === "" && !this.#first) return this.#line(text, start, end);
    let line = this.#open + text.slice(start, end);
    this.#open = "";
    if (this.#first && line.startsWith(BYTE_ORDER_MARK)) line = line.slice(BYTE_ORDER_MARK.length);
    this.#first = false;
    this.#line(line, 0, line.length);
  }

  #line(text: string, start: number, end: number): void {
    if (start === end) return this.#dispatch();
    if (this.#isSkipping || !text.startsWith(DATA, start)) return;
    const colon = start + DATA.length;
    let value = "";
    if (colon < end) {
      if (text[colon] !== ":") return;
      value = text.slice(text.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1, end);
    }
    this.#limit(value.length);
    if (this.#isSkipping) return;
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }

  #dispatch(): void {
    const data = this.#data;
    this.#data = undefined;
    this.#isSkipping = false;
    // An event without data is none, and only keeps the connection alive.
    if (data !== undefined && data !== "") this.#onEvent(data);
  }

  #limit(moreBytes: number): void {
    const dataBytes = this.#data === undefined ? 0 : this.#data.length + 1;
    if (this.#isSkipping || this.#open.length + dataBytes + moreBytes <= this.#maxEventBytes) return;
    if (this.#onTooLong === "skip") {
      this.#isSkipping = true;
      this.#data = undefined;
      return;
    }
    const detail = `an event of a stream is longer than ${this.#maxEventBytes} bytes`;
    throw new ProxyError("llm_response_invalid", { detail });
  }
}
