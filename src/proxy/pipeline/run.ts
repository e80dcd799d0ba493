/**
 * One request going down its chain and the answer coming up again. Between any two steps an error turns into the
 * answer it stands for, so that policies on the way back see errors as replies and can edit them.
 */
import type { Middleware } from "../policies/policy.ts";
import { errorReply } from "./error-reply.ts";
import type { MaybePromise, Next, Reply } from "./exchange.ts";
import type { HttpExchange } from "./http-exchange.ts";

/** What comes after the last middleware of a stage. */
export type StageEnd = (exchange: HttpExchange, run: Run) => MaybePromise<Reply>;

/** A compiled piece of the way: middlewares, then what they lead to. */
export interface Stage {
  readonly chain: readonly Middleware[];
  readonly end: StageEnd;
  /**
   * Bytes of the request body to hold before the chain runs, because something in it reads the body; 0: as many as the
   * request may hold. undefined: nothing reads it.
   */
  readonly captureBytes: number | undefined;
}

export class Run {
  readonly #exchange: HttpExchange;
  #stage: Stage;
  #at = 0;
  /**
   * Made for the first middleware: a plain route has none. Bound and not an arrow function: Node 24 keeps closures that
   * are stored in fields, and all they reach, until the next full garbage collection (docs/performance.md).
   */
  #next: Next | undefined;
  #guarded: Promise<Reply> | undefined;

  constructor(exchange: HttpExchange, stage: Stage) {
    this.#exchange = exchange;
    this.#stage = stage;
  }

  /** Never throws and never rejects. */
  static start(exchange: HttpExchange, stage: Stage): MaybePromise<Reply> {
    const run = new Run(exchange, stage);
    return run.enter(stage);
  }

  /** Goes on with another stage. */
  enter(stage: Stage): MaybePromise<Reply> {
    this.#stage = stage;
    this.#at = 0;
    const { captureBytes } = stage;
    const { requestBody, requestLimitBytes } = this.#exchange;
    if (captureBytes === undefined || requestBody === null || Buffer.isBuffer(requestBody)) return this.#step();
    return this.#guard(this.#exchange.captureRequestBody(captureBytes || requestLimitBytes).then(() => this.#step()));
  }

  #step(): MaybePromise<Reply> {
    const { chain, end } = this.#stage;
    let reply: MaybePromise<Reply>;
    try {
      const middleware = chain[this.#at++];
      reply =
        middleware === undefined
          ? end(this.#exchange, this)
          : middleware(this.#exchange, (this.#next ??= this.#step.bind(this)));
    } catch (error) {
      return errorReply(this.#exchange, error);
    }
    return reply instanceof Promise ? this.#guard(reply) : reply;
  }

  /** A promise that went up unchanged is guarded already. */
  #guard(reply: Promise<Reply>): Promise<Reply> {
    if (reply === this.#guarded) return reply;
    this.#guarded = this.#settled(reply);
    return this.#guarded;
  }

  async #settled(reply: Promise<Reply>): Promise<Reply> {
    try {
      return await reply;
    } catch (error) {
      return errorReply(this.#exchange, error);
    }
  }
}
