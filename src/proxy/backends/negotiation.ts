/**
 * Learns from one TLS handshake which version of HTTP an upstream speaks (ALPN, RFC 7301). Requests that came meanwhile
 * wait, each no longer than its deadline, and are then sent on their way.
 */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { messageOf } from "../../lib/errors.ts";
import { ProxyError } from "../errors.ts";
import type { Abortable } from "../pipeline/exchange.ts";
import { startDeadline } from "./deadline.ts";
import { openSocket, type SocketTaker } from "./dial.ts";
import type { PoolSettings, Settle } from "./pool.ts";
import type { UpstreamRequest, UpstreamTarget } from "./upstream.ts";

const PROTOCOLS = ["h2", "http/1.1"];

export interface Negotiated {
  readonly version: "http1" | "http2";
  /** Its handshake is over; nobody else listens to it. */
  readonly socket: Socket;
}

/** Where a request goes when it is known how. */
interface Sender {
  send(request: UpstreamRequest, settle: Settle): void;
}

export class Negotiation implements SocketTaker {
  readonly #timer: NodeJS.Timeout;
  readonly #done: (outcome: Negotiated | undefined) => void;
  #waiting: WaitingRequest[] = [];
  #socket: Socket | undefined;
  #error: Error | undefined;
  #over = false;
  readonly #onError: (error: Error) => void = this.#keepError.bind(this);
  readonly #onClose: () => void = this.#closed.bind(this);

  /** @param done called once, before those who wait are sent on; undefined: no connection */
  constructor(target: UpstreamTarget, settings: PoolSettings, done: (outcome: Negotiated | undefined) => void) {
    this.#done = done;
    this.#timer = setTimeout(() => this.failed(new ProxyError("connect_timeout")), settings.connectTimeoutMs);
    // After this turn, so that whoever made us can let a request wait first.
    queueMicrotask(() => openSocket(target, PROTOCOLS, settings.resolver, this));
  }

  get wanted(): boolean {
    return !this.#over;
  }

  wait(request: UpstreamRequest, settle: Settle, sender: Sender): void {
    const waiting = new WaitingRequest(request, settle, sender);
    this.#waiting.push(waiting);
    waiting.start();
  }

  opened(socket: Socket): void {
    this.#socket = socket;
    socket.on("error", this.#onError);
    socket.on("close", this.#onClose);
    socket.once("secureConnect", this.#secured.bind(this));
  }

  failed(error: ProxyError): void {
    if (this.#over) return;
    this.#finish(undefined);
    for (const waiting of this.#waiting) waiting.abort(error);
  }

  close(): void {
    this.failed(new ProxyError("upstream_unreachable", { detail: "the data plane is closing" }));
  }

  #keepError(error: Error): void {
    this.#error = error;
  }

  #closed(): void {
    const detail = this.#error === undefined ? "closed by the upstream" : messageOf(this.#error);
    this.failed(new ProxyError("upstream_unreachable", { detail, cause: this.#error }));
  }

  #secured(): void {
    // Only TLS sockets have the event.
    const socket = this.#socket as TLSSocket;
    // Whoever takes the socket over listens to it alone.
    socket.off("error", this.#onError);
    socket.off("close", this.#onClose);
    this.#socket = undefined;
    this.#finish({ version: socket.alpnProtocol === "h2" ? "http2" : "http1", socket });
    for (const waiting of this.#waiting) waiting.proceed();
  }

  #finish(outcome: Negotiated | undefined): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#socket?.destroy();
    this.#done(outcome);
  }
}

class WaitingRequest implements Abortable {
  readonly #request: UpstreamRequest;
  readonly #settle: Settle;
  readonly #sender: Sender;
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  constructor(request: UpstreamRequest, settle: Settle, sender: Sender) {
    this.#request = request;
    this.#settle = settle;
    this.#sender = sender;
  }

  start(): void {
    this.#timer = startDeadline(this.#request, this);
    this.#request.abort?.onAbort(this);
  }

  proceed(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#sender.send(this.#request, this.#settle);
  }

  abort(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    const { body } = this.#request;
    if (body !== null && !Buffer.isBuffer(body)) body.destroy();
    this.#settle.reject(error);
  }
}
