/**
 * Runs one request down its chain and brings the reply back up. Between any two steps an error becomes the reply it
 * stands for, so that policies on the way back see errors as replies and can edit them. ActiveRequest starts it; the
 * terminal of the listener chain enters the chain of the rule.
 *
 *   enter(listener chain) ─▶ policy ─▶ policy ─▶ terminal: find the rule, enter(rule chain)
 *                                                  policy ─▶ policy ─▶ terminal: call the backend
 *   reply  ◀──────────────── edits ◀── edits ◀──── edits ◀── edits ◀──────────┘
 *
 * A step that does not wait returns a plain reply, so a chain that is answered synchronously runs without a promise.
 */
import type { Middleware } from "../policies/policy.ts";
import { errorReply } from "./error-reply.ts";
import type { MaybePromise, Next, Reply, RoutedExchange } from "../exchange/exchange.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { traceChain } from "./trace-chain.ts";

/** The step after the last middleware of a chain: a router or a backend. */
export type ChainTerminal = (exchange: HttpExchange, run: ChainRunner) => MaybePromise<Reply>;

/** Maps the index in the chain to the policy and field that configured the middleware. */
export type Origins = readonly (string | undefined)[];

/** A compiled sequence of middlewares and the terminal it leads to. */
export interface Chain {
  readonly middlewares: readonly Middleware<RoutedExchange>[];
  readonly terminal: ChainTerminal;
  /** Where each middleware is configured, for the log; an entry is undefined when no policy configured it. */
  readonly origins?: Origins | undefined;
  /**
   * Bytes of the request body to hold before the chain runs, because an expression in the chain reads the body. 0 means
   * as many as the request may hold; undefined means that nothing in the chain reads the body.
   */
  readonly captureBytes: number | undefined;
}

export class ChainRunner {
  readonly #exchange: HttpExchange;
  #chain: Chain;
  #at = 0;
  /**
   * Created for the first middleware; a route without policies needs none. A bound method instead of an arrow function:
   * Node 24 keeps closures that are stored in fields, and everything they reach, until the next full garbage collection
   * (docs/performance.md).
   */
  #next: Next | undefined;
  #guarded: Promise<Reply> | undefined;

  constructor(exchange: HttpExchange, chain: Chain) {
    this.#exchange = exchange;
    this.#chain = chain;
  }

  /** Never throws and never rejects. */
  static start(exchange: HttpExchange, chain: Chain): MaybePromise<Reply> {
    const run = new ChainRunner(exchange, chain);
    return run.enter(chain);
  }

  /** Continues with another chain. */
  enter(chain: Chain): MaybePromise<Reply> {
    const { captureBytes } = chain;
    const { requestBody, requestLimitBytes, debug } = this.#exchange;
    this.#chain = debug === undefined ? chain : traceChain(chain, this.#exchange, debug);
    this.#at = 0;
    if (captureBytes === undefined) return this.#step();
    this.#exchange.keepsRequestBody = true;
    if (requestBody === null || Buffer.isBuffer(requestBody)) return this.#step();
    return this.#guard(this.#exchange.captureRequestBody(captureBytes || requestLimitBytes).then(() => this.#step()));
  }

  #step(): MaybePromise<Reply> {
    const { middlewares, terminal, origins } = this.#chain;
    const at = this.#at++;
    let reply: MaybePromise<Reply>;
    try {
      const middleware = middlewares[at];
      reply =
        middleware === undefined
          ? terminal(this.#exchange, this)
          : middleware(this.#exchange, (this.#next ??= this.#step.bind(this)));
    } catch (error) {
      return errorReply(this.#exchange, error, origins?.[at]);
    }
    return reply instanceof Promise ? this.#guard(reply, origins, at) : reply;
  }

  /** Turns a rejection into a reply. A promise that several steps return unchanged is wrapped once. */
  #guard(reply: Promise<Reply>, origins?: Origins, at = 0): Promise<Reply> {
    if (reply === this.#guarded) return reply;
    this.#guarded = this.#settled(reply, origins, at);
    return this.#guarded;
  }

  async #settled(reply: Promise<Reply>, origins: Origins | undefined, at: number): Promise<Reply> {
    try {
      return await reply;
    } catch (error) {
      return errorReply(this.#exchange, error, origins?.[at]);
    }
  }
}
