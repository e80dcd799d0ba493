/**
 * Closes an HTTP/2 connection without losing a request (RFC 9113 §6.8, graceful shutdown). The HTTP/2 server uses it
 * for drains, retired connections and the maximum age.
 *
 *   GOAWAY(2^31 - 1) ──one second──► GOAWAY(last stream) ──last stream ends──► closed
 *   "open no new streams"            requests on their way have arrived by now
 *
 * node:http2 ignores new streams as soon as it has sent a GOAWAY itself, so this class writes the first frame to the
 * socket directly, between node's own frames. A TLS socket does not allow that. There only the second GOAWAY is sent,
 * and a client that honours it retries the requests with a later stream id.
 */
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Clock } from "../../../lib/time/clock.ts";

const FINAL_AFTER_MS = 1_000;
/** GOAWAY frame: length 8, type 7, no flags, stream 0, last stream 2^31 - 1, NO_ERROR. */
const NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

export class GracefulGoaway {
  readonly #session: ServerHttp2Session;
  readonly #socket: Socket;
  readonly #clock: Clock;
  #begun = false;

  /** @param socket the session's own socket */
  constructor(session: ServerHttp2Session, socket: Socket, clock: Clock) {
    this.#session = session;
    this.#socket = socket;
    this.#clock = clock;
  }

  /** Starts the shutdown; later calls have no effect. */
  begin(): void {
    const session = this.#session;
    if (this.#begun || session.closed) return;
    this.#begun = true;
    if (this.#socket instanceof TLSSocket) {
      session.close();
      return;
    }
    // The server's first frame has to be SETTINGS (RFC 9113 §3.4), so wait until the client has acknowledged it.
    if (session.pendingSettingsAck) session.once("localSettings", this.#notify.bind(this));
    else this.#notify();
    session.once("close", this.#clock.after(FINAL_AFTER_MS, session.close.bind(session)));
  }

  #notify(): void {
    if (!this.#session.closed && this.#socket.writable) this.#socket.write(NOTICE);
  }
}
