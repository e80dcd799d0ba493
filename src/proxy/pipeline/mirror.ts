/**
 * Sends copies of requests to other backends (Gateway API RequestMirror; fractions: GEP-3171). A copy leaves with its
 * body just before the request itself; its response is discarded, and a slow or failing mirror never delays the
 * request. Rules create one Mirror per filter (router/bind-rule.ts).
 */
import type { Mirror as MirrorMessage } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { BackendHandle } from "../backends/registry.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { Body } from "../exchange/body.ts";
import { HttpExchange } from "./http-exchange.ts";
import { BodyCopy, Tee } from "../exchange/tee.ts";

const LIMIT_MS = 10_000;
/** Limit of copies in progress per mirror, so that a backend that hangs does not collect requests. */
const MAX_IN_FLIGHT = 1_000;

export interface MirrorOptions {
  readonly log: Logger;
  readonly random?: () => number;
}

export class Mirror {
  readonly #share: number;
  readonly #slot: BackendHandle;
  readonly #options: MirrorOptions;
  #inFlight = 0;

  constructor({ numerator, denominator }: MirrorMessage, slot: BackendHandle, options: MirrorOptions) {
    this.#share = numerator / denominator;
    this.#slot = slot;
    this.#options = options;
  }

  /** Returns true when this request is to be copied. */
  draws(): boolean {
    return this.#inFlight < MAX_IN_FLIGHT && (this.#options.random ?? Math.random)() < this.#share;
  }

  async send(original: HttpExchange, body: Body): Promise<void> {
    const exchange = copyOf(original, body);
    exchange.backend = this.#slot.info;
    exchange.deadlineAtMs = performance.now() + LIMIT_MS;
    this.#inFlight++;
    let status = 0;
    try {
      const reply = await this.#slot.handler(exchange);
      status = reply.status;
      if (reply.body !== null && !Buffer.isBuffer(reply.body)) await drained(reply.body);
    } catch (error) {
      this.#options.log.debug("mirrored request failed", { backend: this.#slot.backendKey, reason: messageOf(error) });
    } finally {
      this.#inFlight--;
      const durationMs = performance.now() - exchange.startedAtMs;
      exchange.finish({ status, requestBytes: 0, responseBytes: 0, durationMs, error: undefined, clientGone: false });
    }
  }
}

/** Starts the copies of a request and replaces its body by one that feeds them. CONNECT requests are not mirrored. */
export function startMirrors(mirrors: readonly Mirror[], exchange: HttpExchange): void {
  if (exchange.connect) return;
  const drawn = mirrors.filter((mirror) => mirror.draws());
  if (drawn.length === 0) return;
  const body = exchange.requestBody;
  if (body === null || Buffer.isBuffer(body)) {
    for (const mirror of drawn) void mirror.send(exchange, body);
    return;
  }
  const copies = drawn.map(() => new BodyCopy(exchange.requestLimitBytes));
  exchange.requestBody = new Tee(body, copies);
  drawn.forEach((mirror, at) => void mirror.send(exchange, copies[at] ?? null));
}

/** Creates an independent exchange: an abort or edit of either does not affect the other. */
function copyOf(original: HttpExchange, body: Body): HttpExchange {
  const { method, target, host, scheme, version, contentLength, requestId, source, serverName, listener, cdnLoop } =
    original;
  const headers = original.requestHeaders.clone();
  const head = { method, target, host, scheme, version, headers, contentLength, requestId, source, serverName };
  // The response of a copy is discarded, so it cannot switch protocols or open a tunnel.
  const rest = { upgrade: undefined, connect: false, takenForProxy: false, proxyAuthorization: undefined, cdnLoop };
  const copy = new HttpExchange({ ...head, ...rest, body, bind: listener.bind });
  copy.listener = listener;
  copy.route = original.route;
  copy.hostChoice = original.hostChoice;
  copy.outboundKind = "Mirror";
  copy.trace = original.trace;
  return copy;
}

class Drain {
  readonly #resolve: () => void;
  readonly #reject: (error: Error) => void;

  constructor(resolve: () => void, reject: (error: Error) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  data(): boolean {
    return true;
  }

  end(): void {
    this.#resolve();
  }

  error(error: Error): void {
    this.#reject(error);
  }
}

function drained(body: Exclude<Body, null | Buffer>): Promise<void> {
  if (body.whole?.() !== undefined) return Promise.resolve();
  return new Promise((resolve, reject) => body.read(new Drain(resolve, reject)));
}
