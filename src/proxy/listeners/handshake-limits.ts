/**
 * One limit of time for a whole handshake, from the first byte of a connection on: the look at its first message and what comes
 * after it together. By the addresses of the socket, which are the same before and after the handshake.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../lib/clock.ts";
import { keyOf } from "./announced.ts";

export class HandshakeLimits {
  readonly #clock: Clock;
  readonly #running = new Map<string, () => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The socket is cut off when it is late. */
  begin(socket: Socket, limitMs: number): void {
    const key = keyOf(socket);
    const cancel = this.#clock.after(limitMs, () => socket.destroy());
    this.#running.set(key, cancel);
    socket.on("close", () => {
      cancel();
      // A client may come again from the same port at once.
      if (this.#running.get(key) === cancel) this.#running.delete(key);
    });
  }

  /** @param socket that `begin` was told, or the secure one over it */
  end(socket: Socket): void {
    const key = keyOf(socket);
    this.#running.get(key)?.();
    this.#running.delete(key);
  }
}
