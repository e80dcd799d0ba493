/**
 * Bytes both ways between a client and a backend (TCPRoute, TLSRoute). In: a connection whose route is known. Out: what the
 * client says to the backend and back, each side's end passed on, backpressure both ways. A side that breaks breaks the other.
 */
import type { Socket } from "node:net";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { addressOf, dial } from "../backends/dial.ts";
import type { Resolver } from "../backends/dns.ts";
import type { Callee } from "../backends/registry.ts";

export interface TcpOptions {
  readonly log: Logger;
  readonly resolver: Resolver;
  readonly connectTimeoutMs: number;
  /** The backend for a connection. @param serverName "" for none @throws ProxyError when there is none */
  readonly choose: (serverName: string) => Callee;
}

export class TcpEngine {
  readonly #options: TcpOptions;

  constructor(options: TcpOptions) {
    this.#options = options;
  }

  /** @param socket paused; what was read of it is back in it */
  async take(socket: Socket, serverName: string): Promise<void> {
    socket.on("error", ignore);
    try {
      await this.#connect(socket, serverName);
    } catch (error) {
      this.#options.log.warn("connection refused", { server_name: serverName, reason: messageOf(error) });
      socket.destroy();
    }
  }

  async #connect(socket: Socket, serverName: string): Promise<void> {
    const { choose, resolver, connectTimeoutMs } = this.#options;
    const { target, begin } = choose(serverName);
    const address = await addressOf(target, resolver);
    if (socket.destroyed) return;
    const upstream = dial(target, address);
    const done = begin();
    const event = target.tls === undefined ? "connect" : "secureConnect";
    const timer = setTimeout(
      () => upstream.destroy(new Error("connect timeout")),
      target.tcp?.connectTimeoutMs || connectTimeoutMs,
    );
    upstream.once(event, () => {
      clearTimeout(timer);
      socket.pipe(upstream);
      upstream.pipe(socket);
    });
    let failure: Error | undefined;
    upstream.on("error", (error) => (failure = error));
    upstream.on("close", () => {
      clearTimeout(timer);
      done(failure === undefined);
      if (failure !== undefined) this.#options.log.warn("backend connection failed", { reason: failure.message });
      // What the backend sent last is still on its way to the client, unless the backend broke off.
      if (failure !== undefined || !socket.writableEnded) socket.destroy();
    });
    socket.on("close", () => {
      if (!upstream.destroyed) upstream.destroy();
    });
  }
}

function ignore(): void {}
