/**
 * One request going down its chain and the answer coming up again. Between any two steps an error turns into the
 * answer it stands for, so that policies on the way back see errors as replies and can edit them.
 */
import type { Middleware } from "../policies/policy.ts";
import { errorReply } from "./error-reply.ts";
import type { MaybePromise, Next, Reply, RoutedExchange } from "./exchange.ts";
import type { HttpExchange } from "./http-exchange.ts";

/** What comes after the last middleware of a stage. */
export type ChainTerminal = (exchange: HttpExchange, run: ChainRunner) => MaybePromise<Reply>;

/** By the place in the chain: the policy and its field. */
export type Origins = readonly (string | undefined)[];

/** A compiled piece of the way: middlewares, then what they lead to. */
export interface Chain {
  readonly middlewares: readonly Middleware<RoutedExchange>[];
  readonly terminal: ChainTerminal;
  /** Where each middleware is configured, for the log; undefined where that is not a policy. */
  readonly origins?: Origins | undefined;
  /**
   * Bytes of the request body to hold before the chain runs, because something in it reads the body; 0: as many as the
   * request may hold. undefined: nothing reads it.
   */
  readonly captureBytes: number | undefined;
}

export class ChainRunner {
  readonly #exchange: HttpExchange;
  #chain: Chain;
  #at = 0;
  /**
   * Made for the first middleware: a plain route has none. Bound and not an arrow function: Node 24 keeps closures that
   * are stored in fields, and all they reach, until the next full garbage collection (docs/performance.md).
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

  /** Goes on with another stage. */
  enter(chain: Chain): MaybePromise<Reply> {
    this.#chain = chain;
    this.#at = 0;
    const { captureBytes } = chain;
    const { requestBody, requestLimitBytes } = this.#exchange;
    if (captureBytes === undefined || requestBody === null || Buffer.isBuffer(requestBody)) return this.#step();
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

  /** A promise that went up unchanged is guarded already. */
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
