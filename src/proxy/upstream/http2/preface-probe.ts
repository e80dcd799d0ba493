/**
 * Asks an upstream on plain text whether it speaks HTTP/2: what a client says first, and whether the answer begins with the
 * SETTINGS of a server (RFC 9113 3.4). Whoever answers anything else, or hangs up, speaks HTTP/1.1. No request is sent.
 */
import type { Socket } from "node:net";
import { ignore } from "../../../lib/ignore.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
/** Without any setting. */
const SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const FRAME_HEAD_BYTES = 9;
const TYPE_AT = 3;
const STREAM_AT = 5;
const SETTINGS_TYPE = 4;
/** A server says its settings at once; one that is silent has refused nothing. */
const PATIENCE_MS = 1000;

export class PrefaceProbe {
  readonly #socket: Socket;
  readonly #tell: (speaksHttp2: boolean) => void;
  readonly #timer: NodeJS.Timeout;
  #head: Buffer = Buffer.alloc(0);
  #over = false;

  /** @param socket that is connected and is used up by this @param tell called once, unless the probe is cancelled */
  constructor(socket: Socket, tell: (speaksHttp2: boolean) => void) {
    this.#socket = socket;
    this.#tell = tell;
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
    // No answer of HTTP/1.1 is shorter.
    if (this.#head.length < FRAME_HEAD_BYTES) return;
    const isSettings = this.#head[TYPE_AT] === SETTINGS_TYPE && this.#head.readUInt32BE(STREAM_AT) === 0;
    this.#decide(isSettings);
  }

  #decide(speaksHttp2: boolean): void {
    if (this.#over) return;
    this.cancel();
    this.#tell(speaksHttp2);
  }
}
