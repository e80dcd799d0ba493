/**
 * Incremental parser of the server-sent events of MCP targets (WHATWG HTML §9.2.6), on bytes: the data of an event is a
 * JSON-RPC message, which stays as it came. Besides data it keeps `id` and `retry`, with which a stream that broke off
 * is asked for again. An event without data, as servers send it to give an id early, is not a message. The parser of model
 * streams (`llm/stream/sse.ts`) has another form on purpose: it runs for each token, works on text, and keeps data only.
 */
import { ERROR_CODES, McpError } from "../mcp-error.ts";

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
/** U+FEFF in UTF-8. */
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const LINE_FEED = Buffer.from("\n");
const MAX_ID_BYTES = 1_024;
/** Ids are sent back in a header (RFC 9110 §5.5): others are ignored, as those with a NUL are by the standard. */
const USABLE_ID = /^[\t\x20-\x7e\x80-\xff]*$/;

export class EventParser {
  /** The last event id; undefined when the stream gave none. */
  lastId: string | undefined = undefined;
  /** Time after which a broken stream may be asked for again. */
  retryMs: number | undefined = undefined;
  readonly #maxEventBytes: number;
  readonly #onEvent: (data: Buffer, type: string) => void;
  /** The start of a line that is not complete yet. */
  #open: Buffer[] = [];
  #openBytes = 0;
  /** Data lines of the current event. */
  #data: Buffer[] = [];
  #dataBytes = 0;
  #type = "";
  #isFirst = true;
  #skipsLineFeed = false;

  /** @param maxEventBytes limit of the memory for one event, with the incomplete line */
  constructor(maxEventBytes: number, onEvent: (data: Buffer, type: string) => void) {
    this.#maxEventBytes = maxEventBytes;
    this.#onEvent = onEvent;
  }

  /** @throws McpError when an event exceeds the limit */
  push(chunk: Buffer): void {
    let at = this.#skipsLineFeed && chunk[0] === LF ? 1 : 0;
    if (chunk.length > 0) this.#skipsLineFeed = false;
    let lf = chunk.indexOf(LF, at);
    let cr = chunk.indexOf(CR, at);
    while (lf !== -1 || cr !== -1) {
      const end = lf === -1 || (cr !== -1 && cr < lf) ? cr : lf;
      this.#line(this.#completed(chunk.subarray(at, end)));
      at = end + 1;
      if (end === cr) {
        if (at === chunk.length) this.#skipsLineFeed = true;
        else if (at === lf) at++;
        cr = chunk.indexOf(CR, at);
      }
      if (lf !== -1 && lf < at) lf = chunk.indexOf(LF, at);
    }
    if (at === chunk.length) return;
    this.#openBytes += chunk.length - at;
    this.#limit();
    this.#open.push(chunk.subarray(at));
  }

  #completed(rest: Buffer): Buffer {
    let line = rest;
    if (this.#open.length > 0) {
      line = Buffer.concat([...this.#open, rest]);
      this.#open = [];
      this.#openBytes = 0;
    }
    if (this.#isFirst && line.subarray(0, 3).equals(BYTE_ORDER_MARK)) line = line.subarray(3);
    this.#isFirst = false;
    return line;
  }

  #line(line: Buffer): void {
    if (line.length === 0) return this.#dispatch();
    const colon = line.indexOf(COLON);
    const name = line.toString("latin1", 0, colon === -1 ? line.length : Math.min(colon, 6));
    const value =
      colon === -1 ? line.subarray(line.length) : line.subarray(line[colon + 1] === SPACE ? colon + 2 : colon + 1);
    if (name === "data") {
      if (this.#data.length > 0) this.#data.push(LINE_FEED);
      this.#data.push(value);
      this.#dataBytes += value.length + 1;
      this.#limit();
    } else if (name === "event") this.#type = value.toString("utf8", 0, 64);
    else if (name === "id") this.#noteId(value);
    else if (name === "retry" && /^\d{1,9}$/.test(value.toString("latin1", 0, 10))) this.retryMs = Number(value);
  }

  #noteId(value: Buffer): void {
    const id = value.length <= MAX_ID_BYTES ? value.toString("latin1") : undefined;
    if (id !== undefined && USABLE_ID.test(id)) this.lastId = id;
  }

  #dispatch(): void {
    const { length } = this.#data;
    const [first] = this.#data;
    const data = length === 1 && first !== undefined ? first : Buffer.concat(this.#data);
    const type = this.#type;
    this.#data = [];
    this.#dataBytes = 0;
    this.#type = "";
    if (data.length > 0) this.#onEvent(data, type);
  }

  #limit(): void {
    if (this.#openBytes + this.#dataBytes <= this.#maxEventBytes) return;
    throw new McpError(ERROR_CODES.internal, "a message of the server is too large", { status: 500 });
  }
}
