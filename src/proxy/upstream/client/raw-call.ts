/**
 * Opens a connection to an upstream for raw bytes, as TCP routes and CONNECT need it. The connection serves one user
 * and is never pooled. `createUpstream` exposes it as `open`.
 */
import type { Socket } from "node:net";
import { ignore } from "../../../lib/ignore.ts";
import type { ProxyError } from "../../exchange/errors.ts";
import type { Abortable } from "../../exchange/exchange.ts";
import { startDeadline } from "../deadline.ts";
import { Dial, type DialOwner, type DialSettings } from "../dial/dial.ts";
import type { RawRequest } from "../upstream.ts";
import type { UpstreamTarget } from "../dial/connection-settings.ts";

/**
 * @returns a paused, connected socket
 * @throws ProxyError upstream_unreachable, connect_timeout, and the reason given to `abort`
 */
export function openRaw(target: UpstreamTarget, request: RawRequest, settings: DialSettings): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  new RawCall({ resolve, reject }).start(target, request, settings);
  return promise;
}

class RawCall implements DialOwner, Abortable {
  readonly #settle: { resolve(socket: Socket): void; reject(error: Error): void };
  #dial: Dial | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #over = false;

  constructor(settle: { resolve(socket: Socket): void; reject(error: Error): void }) {
    this.#settle = settle;
  }

  start(target: UpstreamTarget, request: RawRequest, settings: DialSettings): void {
    this.#deadline = startDeadline(request, this);
    request.abort?.onAbort(this);
    if (this.#over) return;
    this.#dial = new Dial(target, [], { ...settings, cdnLoop: request.cdnLoop }, this);
    this.#dial.start();
  }

  ready(socket: Socket): void {
    this.#end();
    // An `error` event without a listener ends the process, and the caller may attach its own listener later.
    socket.on("error", ignore);
    socket.pause();
    this.#settle.resolve(socket);
  }

  failed(error: ProxyError): void {
    this.abort(error);
  }

  abort(error: Error): void {
    if (this.#over) return;
    this.#end();
    this.#dial?.cancel();
    this.#settle.reject(error);
  }

  #end(): void {
    this.#over = true;
    clearTimeout(this.#deadline);
  }
}
