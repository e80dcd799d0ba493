/** A connection to an upstream for bytes (TCP routes, CONNECT): opened for one user, never pooled, without a protocol of ours. */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { messageOf } from "../../lib/errors.ts";
import { ProxyError } from "../errors.ts";
import type { Abortable } from "../pipeline/exchange.ts";
import { startDeadline } from "./deadline.ts";
import { openSocket, type SocketTaker } from "./dial.ts";
import type { Resolver } from "./dns.ts";
import type { UpstreamRequest, UpstreamTarget } from "./upstream.ts";

/** Limits of the opening; what comes through afterwards has none. */
export type RawRequest = Pick<UpstreamRequest, "deadlineAtMs" | "timeoutCode" | "abort">;

export interface RawSettings {
  readonly resolver: Resolver;
  /** Where the target has no limit of its own. */
  readonly connectTimeoutMs: number;
}

/** @returns a paused socket that can be used @throws ProxyError upstream_unreachable, connect_timeout, and what `abort` says */
export function openRaw(target: UpstreamTarget, request: RawRequest, settings: RawSettings): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  new RawCall({ resolve, reject }).start(target, request, settings);
  return promise;
}

class RawCall implements SocketTaker, Abortable {
  readonly #settle: { resolve(socket: Socket): void; reject(error: Error): void };
  #socket: Socket | undefined;
  #connectTimer: NodeJS.Timeout | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #failure: Error | undefined;
  #over = false;

  constructor(settle: { resolve(socket: Socket): void; reject(error: Error): void }) {
    this.#settle = settle;
  }

  start(target: UpstreamTarget, request: RawRequest, { resolver, connectTimeoutMs }: RawSettings): void {
    const limitMs = target.tcp?.connectTimeoutMs || connectTimeoutMs;
    this.#connectTimer = setTimeout(tooLate, limitMs, this);
    this.#deadline = startDeadline(request, this);
    request.abort?.onAbort(this);
    if (!this.#over) openSocket(target, [], resolver, this);
  }

  get wanted(): boolean {
    return !this.#over;
  }

  opened(socket: Socket): void {
    this.#socket = socket;
    socket.on("error", this.#note.bind(this));
    socket.on("close", this.#closed.bind(this));
    socket.once(socket instanceof TLSSocket ? "secureConnect" : "connect", this.#connected.bind(this));
  }

  failed(error: ProxyError): void {
    this.#end();
    this.#settle.reject(error);
  }

  abort(error: Error): void {
    if (this.#over) return;
    this.#end();
    this.#socket?.destroy();
    this.#settle.reject(error);
  }

  #connected(): void {
    if (this.#over || this.#socket === undefined) return;
    this.#end();
    this.#socket.pause();
    this.#settle.resolve(this.#socket);
  }

  #note(error: Error): void {
    this.#failure = error;
  }

  /** Also of a socket that is in use: whoever uses it hears that by itself. */
  #closed(): void {
    if (this.#over) return;
    const detail = this.#failure === undefined ? "closed by the upstream" : messageOf(this.#failure);
    this.failed(new ProxyError("upstream_unreachable", { detail, cause: this.#failure }));
  }

  #end(): void {
    this.#over = true;
    clearTimeout(this.#connectTimer);
    clearTimeout(this.#deadline);
  }
}

function tooLate(call: RawCall): void {
  call.abort(new ProxyError("connect_timeout"));
}
