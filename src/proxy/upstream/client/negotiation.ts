/**
 * Finds out with one connection which HTTP version an upstream speaks: by ALPN in the TLS handshake (RFC 7301), on
 * plain text with `PrefaceProbe`. `Origin` in client.ts runs at most one at a time per target (singleflight). Requests
 * that arrive meanwhile wait, each until its own deadline, and are sent when the version is known.
 */
import type { Socket } from "node:net";
import { ProxyError } from "../../exchange/errors.ts";
import type { Abortable } from "../../exchange/exchange.ts";
import { startDeadline } from "../deadline.ts";
import { Dial, type DialOwner } from "../dial/dial.ts";
import type { PoolSettings, Settle } from "../pool.ts";
import { PrefaceProbe } from "../http2/preface-probe.ts";
import type { UpstreamRequest } from "../upstream.ts";
import type { UpstreamTarget } from "../dial/connection-settings.ts";

const PROTOCOLS = ["h2", "http/1.1"];

export interface Negotiated {
  readonly version: "http1" | "http2";
  /** The connection, ready and without listeners; undefined when the probe used it up. */
  readonly socket: Socket | undefined;
}

/** Sends a waiting request once the version is known. */
interface Sender {
  send(request: UpstreamRequest, settle: Settle): void;
}

export class Negotiation implements DialOwner {
  readonly #dial: Dial;
  readonly #done: (outcome: Negotiated | undefined) => void;
  readonly #waiting: WaitingRequest[] = [];
  readonly #isPlain: boolean;
  #probe: PrefaceProbe | undefined;

  /**
   * @param done called once, before the waiting requests are sent; its argument is undefined when no connection was
   * made
   */
  constructor(target: UpstreamTarget, settings: PoolSettings, done: (outcome: Negotiated | undefined) => void) {
    this.#done = done;
    this.#isPlain = target.tls === undefined;
    this.#dial = new Dial(target, PROTOCOLS, settings, this);
    this.#dial.start();
  }

  wait(request: UpstreamRequest, settle: Settle, sender: Sender): void {
    const waiting = new WaitingRequest(request, settle, sender);
    this.#waiting.push(waiting);
    waiting.start();
  }

  ready(socket: Socket, protocol: string | undefined): void {
    if (this.#isPlain) this.#probe = new PrefaceProbe(socket, (speaksHttp2) => this.#learned(speaksHttp2, undefined));
    else this.#learned(protocol === "h2", socket);
  }

  #learned(speaksHttp2: boolean, socket: Socket | undefined): void {
    this.#done({ version: speaksHttp2 ? "http2" : "http1", socket });
    for (const waiting of this.#waiting) waiting.proceed();
  }

  failed(error: ProxyError): void {
    this.#done(undefined);
    for (const waiting of this.#waiting) waiting.abort(error);
  }

  close(): void {
    this.#dial.cancel();
    this.#probe?.cancel();
    this.failed(new ProxyError("upstream_unreachable", { detail: "the data plane is closing" }));
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
