/**
 * Keepalive pings of an HTTP/2 session (RFC 9113 §6.7), one at a time; the HTTP/2 server starts one where an interval
 * is set. A peer that does not acknowledge in time is taken as dead and its session is destroyed.
 */
import type { ServerHttp2Session } from "node:http2";

export class Pinger {
  readonly #session: ServerHttp2Session;
  readonly #timeoutMs: number;
  readonly #interval: NodeJS.Timeout;
  #deadline: NodeJS.Timeout | undefined;

  constructor(session: ServerHttp2Session, intervalMs: number, { pingTimeoutMs }: { readonly pingTimeoutMs: number }) {
    this.#session = session;
    this.#timeoutMs = pingTimeoutMs;
    this.#interval = setInterval(() => this.#ping(), intervalMs);
  }

  stop(): void {
    clearInterval(this.#interval);
    clearTimeout(this.#deadline);
  }

  #ping(): void {
    const session = this.#session;
    if (this.#deadline !== undefined || session.destroyed) return;
    this.#deadline = setTimeout(() => session.destroy(), this.#timeoutMs);
    session.ping((error) => {
      // An error means that the session ended with the ping pending, so there is no acknowledgement.
      if (error === null) this.#answered();
    });
  }

  #answered(): void {
    clearTimeout(this.#deadline);
    this.#deadline = undefined;
  }
}
