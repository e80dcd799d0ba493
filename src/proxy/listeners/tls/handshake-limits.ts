/**
 * Limits the time of a whole TLS handshake, from accepting the connection over the peek at the ClientHello to the end;
 * TlsLayer has one per Bind. The key is both ends of the socket, because they stay the same when a TLSSocket wraps it.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../../lib/time/clock.ts";
import { socketKey } from "../preamble/connection-preamble.ts";

interface Handshake {
  readonly cancel: () => void;
  /** Time of performance.now(). */
  readonly beganAtMs: number;
}

export class HandshakeLimits {
  readonly #clock: Clock;
  readonly #running = new Map<string, Handshake>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Destroys the socket unless `end` is called in time. */
  begin(socket: Socket, limitMs: number): void {
    const key = socketKey(socket);
    const cancel = this.#clock.after(limitMs, () => socket.destroy());
    const running = { cancel, beganAtMs: performance.now() };
    this.#running.set(key, running);
    socket.on("close", () => {
      cancel();
      // A client may reconnect from the same port at once, so delete only the entry of this connection.
      if (this.#running.get(key) === running) this.#running.delete(key);
    });
  }

  /** @param socket the one passed to `begin`, or its TLSSocket @returns duration of the handshake in milliseconds */
  end(socket: Socket): number | undefined {
    const key = socketKey(socket);
    const running = this.#running.get(key);
    running?.cancel();
    this.#running.delete(key);
    return running === undefined ? undefined : performance.now() - running.beganAtMs;
  }
}
