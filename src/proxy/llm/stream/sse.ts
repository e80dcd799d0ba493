/**
 * Server-sent events (WHATWG HTML §9.2.6), fed with bytes in any chunking. Lines end in LF, CR or CRLF; comments,
 * `id` and `retry` are skipped; several data lines are joined by LF; one byte order mark at the start is dropped.
 * Works on bytes, so that whoever only looks for a word never decodes text.
 */
import { ProxyError } from "../../errors.ts";

/** @param data valid only during the call */
export type OnEvent = (name: string, data: Buffer) => void;

const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;
const JOIN: Buffer = Buffer.from("\n");
const EMPTY: Buffer = Buffer.alloc(0);
const DATA: Buffer = Buffer.from("data");
const EVENT: Buffer = Buffer.from("event");

export class SseParser {
  readonly #maxEventBytes: number;
  readonly #onEvent: OnEvent;
  /** The unfinished line. */
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  /** Data lines of the open event. */
  #data: Buffer[] = [];
  #dataBytes = 0;
  /** How many of the data lines no longer point into a chunk. */
  #owned = 0;
  #name = "";
  #first = true;
  #skipLineFeed = false;

  /** @param maxEventBytes of lines kept for one event, the unfinished line included */
  constructor(maxEventBytes: number, onEvent: OnEvent) {
    this.#maxEventBytes = maxEventBytes;
    this.#onEvent = onEvent;
  }

  /** @throws ProxyError response_invalid when an event grows beyond the limit */
  push(chunk: Buffer): void {
    let at = this.#skipLineFeed && chunk[0] === LF ? 1 : 0;
    if (chunk.length > 0) this.#skipLineFeed = false;
    let lf = chunk.indexOf(LF, at);
    let cr = chunk.indexOf(CR, at);
    while (lf !== -1 || cr !== -1) {
      const end = lf === -1 || (cr !== -1 && cr < lf) ? cr : lf;
      const start = at;
      at = end + 1;
      if (end === cr) {
        if (at === chunk.length) this.#skipLineFeed = true;
        else if (chunk[at] === LF) at++;
      }
      this.#line(this.#take(chunk.subarray(start, end)));
      if (lf !== -1 && lf < at) lf = chunk.indexOf(LF, at);
      if (cr !== -1 && cr < at) cr = chunk.indexOf(CR, at);
    }
    this.#hold(chunk.subarray(at));
    // Data lines point into the chunk: those of an event that is still open must outlive it.
    for (; this.#owned < this.#data.length; this.#owned++)
      this.#data[this.#owned] = Buffer.from(this.#data[this.#owned] as Buffer);
  }

  /** The stream is over: an event without its closing blank line still counts. */
  end(): void {
    if (this.#pieces.length > 0) this.#line(this.#take(EMPTY));
    this.#dispatch();
  }

  #hold(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#limit(piece.length);
    // A copy: the chunk may sit in a buffer that its owner reuses after `push`.
    this.#pieces.push(Buffer.from(piece));
    this.#pieceBytes += piece.length;
  }

  #take(tail: Buffer): Buffer {
    if (this.#pieces.length === 0) return tail;
    const line = Buffer.concat([...this.#pieces, tail]);
    this.#pieces = [];
    this.#pieceBytes = 0;
    return line;
  }

  #line(bytes: Buffer): void {
    let text = bytes;
    if (this.#first) {
      this.#first = false;
      if (text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf) text = text.subarray(3);
    }
    if (text.length === 0) return this.#dispatch();
    if (isField(text, DATA)) {
      const value = valueOf(text, DATA);
      this.#limit(value.length);
      this.#data.push(value);
      this.#dataBytes += value.length + 1;
    } else if (isField(text, EVENT)) this.#name = valueOf(text, EVENT).toString("utf8");
  }

  #dispatch(): void {
    const lines = this.#data;
    const name = this.#name;
    this.#data = [];
    this.#dataBytes = 0;
    this.#owned = 0;
    this.#name = "";
    if (lines.length > 0) this.#onEvent(name, lines.length === 1 ? (lines[0] as Buffer) : joined(lines));
  }

  #limit(moreBytes: number): void {
    if (this.#pieceBytes + this.#dataBytes + moreBytes <= this.#maxEventBytes) return;
    const detail = `an event of a stream is longer than ${this.#maxEventBytes} bytes`;
    throw new ProxyError("response_invalid", { detail });
  }
}

function joined(lines: readonly Buffer[]): Buffer {
  return Buffer.concat(lines.flatMap((line, index) => (index === 0 ? [line] : [JOIN, line])));
}

/** A name without a colon is a field without a value. */
function isField(line: Buffer, name: Buffer): boolean {
  if (line.length < name.length) return false;
  for (let at = 0; at < name.length; at++) if (line[at] !== name[at]) return false;
  return line.length === name.length || line[name.length] === COLON;
}

function valueOf(line: Buffer, name: Buffer): Buffer {
  return line.subarray(name.length + (line[name.length + 1] === SPACE ? 2 : 1));
}
