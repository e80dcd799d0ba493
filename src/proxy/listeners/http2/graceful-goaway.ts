/**
 * The end of an HTTP/2 connection that loses no request (RFC 9113 6.8): the client first hears that it shall open no more
 * streams, with the largest number that a stream can have, so that what is on its way is still served; a second later it
 * hears the last stream that was. node:http2 ignores new streams once it has sent the first of the two itself, so its bytes
 * are written here, between its own frames. A TLS socket allows nobody to write beside node:http2: there the second one alone
 * is sent, and a client that honours it sends again what came later.
 */
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Clock } from "../../../lib/clock.ts";

const FINAL_AFTER_MS = 1_000;
/** GOAWAY, eight bytes, no flags, stream 0; the last stream 2^31 - 1, no error. */
const NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

export class GracefulGoaway {
  readonly #session: ServerHttp2Session;
  readonly #socket: Socket;
  readonly #clock: Clock;
  #begun = false;

  /** @param socket what the session reads and writes */
  constructor(session: ServerHttp2Session, socket: Socket, clock: Clock) {
    this.#session = session;
    this.#socket = socket;
    this.#clock = clock;
  }

  /** May be said more than once. */
  begin(): void {
    const session = this.#session;
    if (this.#begun || session.closed) return;
    this.#begun = true;
    if (this.#socket instanceof TLSSocket) {
      session.close();
      return;
    }
    // Our settings must be the first that the client reads.
    if (session.pendingSettingsAck) session.once("localSettings", this.#notify.bind(this));
    else this.#notify();
    session.once("close", this.#clock.after(FINAL_AFTER_MS, session.close.bind(session)));
  }

  #notify(): void {
    if (!this.#session.closed && this.#socket.writable) this.#socket.write(NOTICE);
  }
}
