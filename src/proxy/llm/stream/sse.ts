/**
 * Server-sent events (WHATWG HTML §9.2.6), fed with bytes in any chunking. Lines end in LF, CR or CRLF; comments,
 * `id` and `retry` are skipped; several data lines are joined by LF; one byte order mark at the start is dropped.
 * Works on bytes, so that whoever only looks for a word never decodes text.
 */
import { ProxyError } from "../../errors.ts";

/** @param data valid only during the call */
export type OnEvent = (name: string, data: Buffer) => void;

export interface SseParser {
  /** @throws ProxyError response_invalid when an event grows beyond the limit */
  push(chunk: Buffer): void;
  /** The stream is over: an event without its closing blank line still counts. */
  end(): void;
}

const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;
const JOIN: Buffer = Buffer.from("\n");
const EMPTY: Buffer = Buffer.alloc(0);

/** @param maxEventBytes of lines kept for one event, the unfinished line included */
export function createSseParser(maxEventBytes: number, onEvent: OnEvent): SseParser {
  let pieces: Buffer[] = [];
  let pieceBytes = 0;
  let data: Buffer[] = [];
  let dataBytes = 0;
  /** How many of `data` no longer point into a chunk. */
  let owned = 0;
  let name = "";
  let first = true;
  let skipLineFeed = false;

  function hold(piece: Buffer): void {
    if (piece.length === 0) return;
    if (pieceBytes + dataBytes + piece.length > maxEventBytes)
      throw new ProxyError("response_invalid", { detail: `an event of a stream is longer than ${maxEventBytes} bytes` });
    // A copy: the chunk may sit in a buffer that its owner reuses after `push`.
    pieces.push(Buffer.from(piece));
    pieceBytes += piece.length;
  }

  function take(tail: Buffer): Buffer {
    if (pieces.length === 0) return tail;
    const line = Buffer.concat([...pieces, tail]);
    pieces = [];
    pieceBytes = 0;
    return line;
  }

  function dispatch(): void {
    const lines = data;
    const event = name;
    data = [];
    dataBytes = 0;
    owned = 0;
    name = "";
    if (lines.length === 0) return;
    onEvent(event, lines.length === 1 ? (lines[0] as Buffer) : joined(lines));
  }

  function line(bytes: Buffer): void {
    let text = bytes;
    if (first) {
      first = false;
      if (text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf) text = text.subarray(3);
    }
    if (text.length === 0) return dispatch();
    const colon = text.indexOf(COLON);
    if (colon === 0) return;
    const field = text.toString("latin1", 0, colon === -1 ? text.length : colon);
    let value = colon === -1 ? EMPTY : text.subarray(colon + 1);
    if (value[0] === SPACE) value = value.subarray(1);
    if (field === "event") name = value.toString("utf8");
    if (field !== "data") return;
    if (pieceBytes + dataBytes + value.length > maxEventBytes)
      throw new ProxyError("response_invalid", { detail: `an event of a stream is longer than ${maxEventBytes} bytes` });
    data.push(value);
    dataBytes += value.length + 1;
  }

  return {
    push(chunk) {
      let at = 0;
      if (skipLineFeed && chunk.length > 0) {
        skipLineFeed = false;
        if (chunk[0] === LF) at = 1;
      }
      let lf = chunk.indexOf(LF, at);
      let cr = chunk.indexOf(CR, at);
      while (lf !== -1 || cr !== -1) {
        const end = lf === -1 || (cr !== -1 && cr < lf) ? cr : lf;
        const start = at;
        at = end + 1;
        if (end === cr) {
          if (at === chunk.length) skipLineFeed = true;
          else if (chunk[at] === LF) at++;
        }
        line(take(chunk.subarray(start, end)));
        if (lf !== -1 && lf < at) lf = chunk.indexOf(LF, at);
        if (cr !== -1 && cr < at) cr = chunk.indexOf(CR, at);
      }
      hold(chunk.subarray(at));
      // Data lines point into the chunk: those of an event that is still open must outlive it.
      for (; owned < data.length; owned++) data[owned] = Buffer.from(data[owned] as Buffer);
    },
    end() {
      if (pieces.length > 0) line(take(EMPTY));
      dispatch();
    },
  };
}

function joined(lines: readonly Buffer[]): Buffer {
  return Buffer.concat(lines.flatMap((line, index) => (index === 0 ? [line] : [JOIN, line])));
}
