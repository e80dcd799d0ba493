/**
 * Incremental parser of HTTP/1.1 responses (RFC 9112), used by `Http1Connection`. It is strict: any byte that does not
 * fit ends the connection, because a proxy that disagrees with its upstream about where a message ends (§6.3) hands one
 * client's response to another.
 *
 *     idle ─start─▶ head ─┬─▶ length ──────────────────────────────▶ idle     Content-Length
 *                   ▲ │   ├─▶ size ─▶ chunk ─▶ chunkEnd ─▶ size …             Transfer-Encoding: chunked
 *                   └─┘   │   └─ 0 ─▶ trailers ────────────────────▶ idle
 *                interim  ├─▶ untilClose ─────────────(eof)────────▶ idle     neither of them
 *                 (1xx)   └─▶ switched                                        101, when an upgrade was requested
 *
 * Bytes arrive in arbitrary pieces. An incomplete line stays in `#rest` and is joined with the next piece. Body data is
 * handed over as it arrives. The bytes may be borrowed (dial/shared-read-buffer.ts): data that outlives `feed` is
 * copied then.
 */
import { HeaderList } from "../../../lib/header-list.ts";
import { ProxyError } from "../../exchange/errors.ts";
import {
  ROLE,
  addNominated,
  dropNames,
  fieldOf,
  isFieldValue,
  isTrailer,
  noteSpelling,
} from "../../exchange/fields.ts";
import type { Expected, ResponseEvents } from "./response-events.ts";

const MAX_HEAD_BYTES = 65_536;
const MAX_FIELDS = 200;
const MAX_CHUNK_LINE = 4_096;
const MAX_INTERIM = 16;
const HEAD_END = Buffer.from("\r\n\r\n");
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const LENGTH = /^[0-9]{1,15}$/;
const KEEP_ALIVE_TIMEOUT = /(?:^|[ ,])timeout=([0-9]{1,6})/i;

const STATE = {
  idle: 0,
  head: 1,
  length: 2,
  size: 3,
  chunk: 4,
  chunkEnd: 5,
  trailers: 6,
  untilClose: 7,
  switched: 8,
} as const;
type State = (typeof STATE)[keyof typeof STATE];

interface Framing {
  length: number;
  chunked: boolean;
  close: boolean;
  upgrade: string;
  /** HTTP/1.0, which has no transfer codings. */
  readonly isOld: boolean;
}

export class ResponseParser {
  /** Idle seconds that the upstream announced in `Keep-Alive: timeout=`. */
  keepAliveSeconds: number | undefined;
  readonly #events: ResponseEvents;
  #state: State = STATE.idle;
  #rest: Buffer | undefined;
  #left = 0;
  #headOnly = false;
  #close = false;
  #interim = 0;
  #mayUpgrade = false;
  #keepsCase = false;
  #trailers: string[] = [];
  #borrowed = false;

  constructor(events: ResponseEvents) {
    this.#events = events;
  }

  start({ headOnly, mayUpgrade, keepsCase }: Expected): void {
    this.#mayUpgrade = mayUpgrade;
    this.#keepsCase = keepsCase;
    this.#state = STATE.head;
    this.#headOnly = headOnly;
    this.#interim = 0;
  }

  /** True when any byte of the response has arrived. */
  get begun(): boolean {
    return this.#state !== STATE.head || this.#rest !== undefined || this.#interim > 0;
  }

  /**
   * @param chunk the parser writes to it: it moves the data of several chunks together
   * @param borrowed the chunk is valid only during the call
   * @throws ProxyError response_invalid
   */
  feed(chunk: Buffer, borrowed: boolean): void {
    let bytes = chunk;
    this.#borrowed = borrowed;
    if (this.#rest !== undefined) {
      bytes = Buffer.concat([this.#rest, chunk]);
      this.#rest = undefined;
      this.#borrowed = false;
    }
    let at = 0;
    while (this.#state === STATE.head) {
      const next = this.#head(bytes, at);
      if (next < 0) {
        if (bytes.length - at > MAX_HEAD_BYTES) throw invalid("header block too large");
        if (at < bytes.length) this.#rest = this.#kept(bytes, at);
        return;
      }
      at = next;
    }
    if (at < bytes.length) this.#body(bytes, at);
  }

  /** Handles the end of the connection. @returns false when the message was incomplete */
  eof(): boolean {
    if (this.#state !== STATE.untilClose) return this.#state === STATE.idle;
    this.#finish(false);
    return true;
  }

  /** Reads one head, final or interim. @returns the position behind it, or -1 when more bytes are needed */
  #head(bytes: Buffer, start: number): number {
    const end = bytes.indexOf(HEAD_END, start);
    if (end < 0) return -1;
    if (end - start > MAX_HEAD_BYTES) throw invalid("header block too large");
    const text = bytes.toString("latin1", start, end + 2);
    const lineEnd = text.indexOf("\r\n");
    const line = STATUS_LINE.exec(text.slice(0, lineEnd));
    if (line === null) throw invalid("malformed status line");
    const status = Number(line[2]);
    const framing: Framing = {
      length: -1,
      chunked: false,
      close: line[1] === "0",
      upgrade: "",
      isOld: line[1] === "0",
    };
    const headers = this.#fields(text, lineEnd + 2, framing);
    if (status === 101 && this.#mayUpgrade) {
      this.#state = STATE.switched;
      this.#events.onSwitch(framing.upgrade, headers, this.#kept(bytes, end + 4));
      return bytes.length;
    }
    if (status < 200) {
      if (status === 101 || ++this.#interim > MAX_INTERIM) throw invalid("unexpected interim response");
      return end + 4;
    }
    this.#begin(status, headers, framing, end + 4 === bytes.length);
    return end + 4;
  }

  #fields(text: string, start: number, framing: Framing): HeaderList {
    const raw: string[] = [];
    let nominated: Set<string> | undefined;
    let spelling: Map<string, string> | undefined;
    for (let at = start; at < text.length;) {
      const end = text.indexOf("\r\n", at);
      const colon = text.indexOf(":", at);
      const field = colon > at && colon < end ? fieldOf(text.slice(at, colon)) : undefined;
      if (field === undefined) throw invalid("malformed header line");
      const value = trimmed(text, colon + 1, end);
      if (!isFieldValue(value)) throw invalid("control character in a header");
      if (this.#keepsCase) spelling = noteSpelling(text.slice(at, colon), field.name, spelling);
      at = end + 2;
      if (raw.length >= MAX_FIELDS * 2) throw invalid("too many headers");
      if (field.role === ROLE.plain) raw.push(field.name, value);
      else if (field.role === ROLE.connection) nominated = connection(value, framing, nominated);
      else this.#special(field, value, framing, raw);
    }
    if (framing.chunked && framing.length >= 0) throw invalid("both content-length and transfer-encoding");
    if (framing.chunked && framing.isOld) throw invalid("transfer-encoding in HTTP/1.0");
    if (nominated !== undefined) dropNames(raw, nominated);
    return new HeaderList(raw, spelling);
  }

  #special(field: { name: string; role: number }, value: string, framing: Framing, raw: string[]): void {
    switch (field.role) {
      case ROLE.contentLength:
        if (!LENGTH.test(value) || (framing.length >= 0 && framing.length !== Number(value)))
          throw invalid("malformed content-length");
        if (framing.length < 0) raw.push(field.name, value);
        framing.length = Number(value);
        return;
      case ROLE.transferEncoding:
        if (framing.chunked || value.toLowerCase() !== "chunked") throw invalid("unsupported transfer-encoding");
        framing.chunked = true;
        return;
      case ROLE.keepAlive: {
        const seconds = KEEP_ALIVE_TIMEOUT.exec(value)?.[1];
        if (seconds !== undefined) this.keepAliveSeconds = Number(seconds);
        return;
      }
      case ROLE.upgrade:
        framing.upgrade = value;
        return;
      case ROLE.hop:
      case ROLE.te:
        return;
      default:
        raw.push(field.name, value);
    }
  }

  /** @param bare no byte follows the head: a connection whose response has no body can be reused only then */
  #begin(status: number, headers: HeaderList, framing: Framing, bare: boolean): void {
    this.#close = framing.close;
    const bodiless = this.#headOnly || status === 204 || status === 304;
    if (bodiless || (!framing.chunked && framing.length === 0)) {
      this.#state = STATE.idle;
      this.#events.onHead(status, headers, false);
      this.#events.onEnd([], bare && !this.#close);
      return;
    }
    if (framing.chunked) this.#state = STATE.size;
    else if (framing.length > 0) {
      this.#state = STATE.length;
      this.#left = framing.length;
    } else this.#state = STATE.untilClose;
    this.#events.onHead(status, headers, true);
  }

  #body(bytes: Buffer, start: number): void {
    switch (this.#state) {
      case STATE.idle:
        throw invalid("bytes after the end of the response");
      case STATE.untilClose:
        this.#events.onData(this.#piece(bytes, start, bytes.length));
        return;
      case STATE.length: {
        const end = Math.min(bytes.length, start + this.#left);
        this.#left -= end - start;
        this.#events.onData(this.#piece(bytes, start, end));
        if (this.#left > 0) return;
        this.#finish(end === bytes.length && !this.#close);
        return;
      }
      default:
        this.#chunks(bytes, start);
    }
  }

  /**
   * Hands the data of all chunks in one read over as one piece, which saves writes for bursts of small events. The data
   * is moved together inside `bytes`, between `from` and `to`.
   */
  #chunks(bytes: Buffer, start: number): void {
    let from = 0;
    let to = 0;
    let at = start;
    let next = start;
    while ((next = this.#chunkStep(bytes, at)) >= 0) {
      const data = this.#dataFrom;
      if (next > data) {
        if (to === 0) from = data;
        // Copy behind the data so far: a view of each chunk would cost more than the rest of the work.
        else bytes.copyWithin(to, data, next);
        to = to === 0 ? next : to + next - data;
      }
      at = next;
      if (this.#state === STATE.idle || at === bytes.length) break;
    }
    const ended = this.#state === STATE.idle;
    if (!ended && at < bytes.length) this.#rest = this.#kept(bytes, at);
    if (to > from) this.#events.onData(this.#piece(bytes, from, to));
    if (ended) this.#events.onEnd(this.#trailers, at === bytes.length && !this.#close);
  }

  /** Cuts body data out of the fed bytes, as a copy when they are borrowed. */
  #piece(bytes: Buffer, from: number, to: number): Buffer {
    if (!this.#borrowed) return from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to);
    const piece = this.#events.room(to - from);
    bytes.copy(piece, 0, from, to);
    return piece;
  }

  /** Keeps the bytes that cannot be parsed yet, as a copy when they are borrowed. */
  #kept(bytes: Buffer, from: number): Buffer {
    const rest = bytes.subarray(from);
    return this.#borrowed ? Buffer.from(rest) : rest;
  }

  /** Start of the data in the element that `#chunkStep` read last; beyond its end for an element without data. */
  #dataFrom = 0;

  /**
   * Reads one element: a size line, data, the end of a chunk, or a trailer line.
   * @returns the position behind it, or -1 when more bytes are needed
   */
  #chunkStep(bytes: Buffer, at: number): number {
    this.#dataFrom = bytes.length + 1;
    switch (this.#state) {
      case STATE.size:
        return this.#size(bytes, at);
      case STATE.chunk: {
        const end = Math.min(bytes.length, at + this.#left);
        this.#dataFrom = at;
        this.#left -= end - at;
        if (this.#left === 0) this.#state = STATE.chunkEnd;
        return end;
      }
      case STATE.chunkEnd:
        if (bytes.length - at < 2) return -1;
        if (bytes[at] !== 13 || bytes[at + 1] !== 10) throw invalid("chunk longer than its size");
        this.#state = STATE.size;
        return at + 2;
      default:
        return this.#trailerLine(bytes, at);
    }
  }

  #size(bytes: Buffer, start: number): number {
    let at = start;
    let size = 0;
    for (let digit = hex(bytes[at]); digit >= 0; digit = hex(bytes[++at])) size = size * 16 + digit;
    const end = bytes[at] === 13 && bytes[at + 1] === 10 ? at + 1 : bytes.indexOf(10, start);
    if (end < 0) {
      if (bytes.length - start > MAX_CHUNK_LINE) throw invalid("chunk size line too long");
      return -1;
    }
    if (at === start || at - start > 12 || end - start > MAX_CHUNK_LINE || bytes[end - 1] !== 13)
      throw invalid("malformed chunk size");
    // Chunk extensions are ignored (RFC 9112 §7.1.1), but they have to begin with ";" and hold no control characters.
    if (at !== end - 1 && !/^[ \t]*;/.test(bytes.toString("latin1", at, end - 1)))
      throw invalid("malformed chunk size");
    if (at !== end - 1 && !isFieldValue(bytes.toString("latin1", at, end - 1)))
      throw invalid("malformed chunk extension");
    this.#left = size;
    this.#trailers = [];
    this.#state = size === 0 ? STATE.trailers : STATE.chunk;
    return end + 1;
  }

  #trailerLine(bytes: Buffer, start: number): number {
    const end = bytes.indexOf(10, start);
    if (end < 0) {
      if (bytes.length - start > MAX_HEAD_BYTES) throw invalid("trailers too large");
      return -1;
    }
    if (bytes[end - 1] !== 13 || end === start) throw invalid("malformed trailer");
    if (end - start === 1) {
      this.#state = STATE.idle;
      return end + 1;
    }
    const text = bytes.toString("latin1", start, end - 1);
    const colon = text.indexOf(":");
    const field = colon > 0 ? fieldOf(text.slice(0, colon)) : undefined;
    const value = trimmed(text, colon + 1, text.length);
    if (field === undefined || !isFieldValue(value)) throw invalid("malformed trailer");
    if (this.#trailers.length >= MAX_FIELDS * 2) throw invalid("too many trailers");
    if (isTrailer(field)) this.#trailers.push(this.#keepsCase ? text.slice(0, colon) : field.name, value);
    return end + 1;
  }

  #finish(reusable: boolean): void {
    this.#state = STATE.idle;
    this.#events.onEnd([], reusable);
  }
}

function connection(value: string, framing: Framing, nominated: Set<string> | undefined): Set<string> {
  const names = nominated ?? new Set<string>();
  addNominated(value, names);
  if (names.has("close")) framing.close = true;
  else if (names.has("keep-alive")) framing.close = false;
  return names;
}

function trimmed(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}

function hex(code: number | undefined): number {
  if (code === undefined) return -1;
  if (code >= 48 && code <= 57) return code - 48;
  if (code >= 97 && code <= 102) return code - 87;
  return code >= 65 && code <= 70 ? code - 55 : -1;
}

function invalid(detail: string): ProxyError {
  return new ProxyError("response_invalid", { detail });
}
