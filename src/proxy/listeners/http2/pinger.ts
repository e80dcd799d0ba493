/** Pings on a connection of HTTP/2, one at a time: a peer that does not answer is gone (RFC 9113 6.7). */
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
      // A ping that was cancelled with its session has no say any more.
      if (error === null) this.#answered();
    });
  }

  #answered(): void {
    clearTimeout(this.#deadline);
    this.#deadline = undefined;
  }
}
