/**
 * One limit of time for a whole handshake, from the first byte of a connection on: the look at its first message and what comes
 * after it together. By the addresses of the socket, which are the same before and after the handshake.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../../lib/clock.ts";
import { socketKey } from "../preamble/connection-preamble.ts";

interface Handshake {
  readonly cancel: () => void;
  /** performance.now() */
  readonly beganAtMs: number;
}

export class HandshakeLimits {
  readonly #clock: Clock;
  readonly #running = new Map<string, Handshake>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The socket is cut off when it is late. */
  begin(socket: Socket, limitMs: number): void {
    const key = socketKey(socket);
    const cancel = this.#clock.after(limitMs, () => socket.destroy());
    const running = { cancel, beganAtMs: performance.now() };
    this.#running.set(key, running);
    socket.on("close", () => {
      cancel();
      // A client may come again from the same port at once.
      if (this.#running.get(key) === running) this.#running.delete(key);
    });
  }

  /** @param socket that `begin` was told, or the secure one over it @returns how long it took */
  end(socket: Socket): number | undefined {
    const key = socketKey(socket);
    const running = this.#running.get(key);
    running?.cancel();
    this.#running.delete(key);
    return running === undefined ? undefined : performance.now() - running.beganAtMs;
  }
}
