/**
 * Finds out whether an upstream on plain text speaks HTTP/2 with prior knowledge: it sends the client's connection
 * preface and checks that the answer begins with the SETTINGS frame of a server (RFC 9113 §3.4). Any other answer, or a
 * closed connection, means HTTP/1.1. The probe sends no request and uses its connection up. `Negotiation` runs it.
 */
import type { Socket } from "node:net";
import { ignore } from "../../../lib/ignore.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
/** An empty SETTINGS frame. */
const SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const FRAME_HEAD_BYTES = 9;
const TYPE_AT = 3;
const STREAM_AT = 5;
const SETTINGS_TYPE = 4;
/**
 * A server sends SETTINGS at once. One that is silent for this long has not refused HTTP/2, so the probe assumes it.
 */
const PATIENCE_MS = 1000;

export class PrefaceProbe {
  readonly #socket: Socket;
  readonly #onResult: (speaksHttp2: boolean) => void;
  readonly #timer: NodeJS.Timeout;
  #head: Buffer = Buffer.alloc(0);
  #over = false;

  /** @param socket connected; the probe uses it up @param onResult called once, unless the probe is cancelled */
  constructor(socket: Socket, onResult: (speaksHttp2: boolean) => void) {
    this.#socket = socket;
    this.#onResult = onResult;
    this.#timer = setTimeout(this.#decide.bind(this, true), PATIENCE_MS);
    socket.on("data", this.#read.bind(this));
    socket.on("error", ignore);
    socket.on("close", this.#decide.bind(this, false));
    socket.write(Buffer.concat([PREFACE, SETTINGS]));
  }

  cancel(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    this.#head = Buffer.concat([this.#head, bytes]);
    // An HTTP/1.1 response is never shorter than a frame header.
    if (this.#head.length < FRAME_HEAD_BYTES) return;
    const isSettings = this.#head[TYPE_AT] === SETTINGS_TYPE && this.#head.readUInt32BE(STREAM_AT) === 0;
    this.#decide(isSettings);
  }

  #decide(speaksHttp2: boolean): void {
    if (this.#over) return;
    this.cancel();
    this.#onResult(speaksHttp2);
  }
}
