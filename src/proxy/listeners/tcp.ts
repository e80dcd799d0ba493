/**
 * Bytes both ways between a client and a backend (TCPRoute, TLSRoute). In: a connection whose route is known. Out: what the
 * client says to the backend and back, each side's end passed on, backpressure both ways. A side that breaks breaks the other.
 */
import type { Socket } from "node:net";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { Dial, type DialSettings } from "../backends/dial.ts";
import type { Callee } from "../backends/registry.ts";
import type { UpstreamTarget } from "../backends/upstream.ts";

export interface TcpOptions extends DialSettings {
  readonly log: Logger;
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

  async #connect(client: Socket, serverName: string): Promise<void> {
    const { target, begin } = this.#options.choose(serverName);
    const done = begin();
    let upstream: Socket;
    try {
      upstream = await opened(target, this.#options, client);
    } catch (error) {
      done(client.destroyed ? undefined : false);
      throw error;
    }
    let failure: Error | undefined;
    upstream.on("error", (error) => (failure = error));
    upstream.on("close", () => {
      done(failure === undefined);
      if (failure !== undefined) this.#options.log.warn("backend connection failed", { reason: failure.message });
      // What the backend sent last is still on its way to the client, unless the backend broke off.
      if (failure !== undefined || !client.writableEnded) client.destroy();
    });
    client.on("close", () => {
      if (!upstream.destroyed) upstream.destroy();
    });
    client.pipe(upstream);
    upstream.pipe(client);
  }
}

/** A connection to the backend, given up when the client goes. */
function opened(target: UpstreamTarget, settings: DialSettings, client: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const dial = new Dial(target, [], settings, { ready: resolve, failed: reject });
    client.once("close", () => {
      dial.cancel();
      reject(new Error("the client has gone"));
    });
    if (client.destroyed) reject(new Error("the client has gone"));
    else dial.start();
  });
}

function ignore(): void {}
