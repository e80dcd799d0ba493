/**
 * The operators of this thread who wait for a request (`/debug/trace`). The listeners ask it for each request whether one
 * waits at all; that is the whole cost when none does. Each watch gets one request.
 */
import type { Expression } from "../../cel/expression.ts";
import type { Scope } from "../../cel/scope.ts";
import { messageOf } from "../../lib/errors.ts";
import type { DebugTrace } from "../exchange/debug-trace.ts";
import type { ReportedExchange } from "../exchange/exchange.ts";
import { RequestDebugTrace } from "./request-debug-trace.ts";
import { SECRET_HEADERS } from "./state.ts";
import { Watch, type TraceReader, type WatchOptions } from "./watch.ts";

/** Limit of operators who wait at once, so that forgotten streams cannot fill the memory. */
const MAX_WATCHES = 64;

export type OpenedWatch = { readonly ok: true; readonly reader: TraceReader } | WatchRefusal;

export interface WatchRefusal {
  readonly ok: false;
  readonly code: "invalid_expression" | "too_many";
  readonly reason: string;
}

export interface DebugTracesOptions {
  /** @throws CelError when the text does not compile */
  readonly compile: (source: string) => Expression;
  /** Returns the names, in lower case, of header fields in which policies expect credentials. */
  readonly secretHeaders: () => ReadonlySet<string>;
  /** Returns the names, in lower case, of the query parameters in which policies of a Bind expect credentials. */
  readonly secretParameters: (bind: string) => ReadonlySet<string>;
}

export class DebugTraces {
  /** True while a watch waits for a request; listeners read it for every request. */
  isWaiting = false;
  /** Requests that are being recorded. */
  active = 0;
  readonly #options: DebugTracesOptions;
  readonly #waiting = new Map<Watch, Expression | undefined>();
  readonly #open = new Set<Watch>();

  constructor(options: DebugTracesOptions) {
    this.#options = options;
  }

  open({ expression, showsSecrets }: WatchOptions): OpenedWatch {
    if (this.#open.size >= MAX_WATCHES)
      return { ok: false, code: "too_many", reason: `${MAX_WATCHES} traces are open already; close one of them` };
    let chooses: Expression | undefined;
    try {
      chooses = expression === undefined ? undefined : this.#options.compile(expression);
    } catch (error) {
      return { ok: false, code: "invalid_expression", reason: messageOf(error) };
    }
    const watch = new Watch(showsSecrets, (closed) => {
      this.#open.delete(closed);
      this.#remove(closed);
    });
    this.#open.add(watch);
    this.#waiting.set(watch, chooses);
    this.isWaiting = true;
    return { ok: true, reader: watch };
  }

  /** Starts the recording of a request that has just arrived; undefined when no watch wants it. */
  begin(exchange: ReportedExchange): DebugTrace | undefined {
    const caught = [...this.#waiting].flatMap(([watch, chooses]) =>
      chooses === undefined || isChosen(chooses, exchange) ? [watch] : [],
    );
    if (caught.length === 0) return undefined;
    for (const watch of caught) this.#remove(watch);
    this.active++;
    const { secretHeaders, secretParameters } = this.#options;
    const masks = {
      headers: new Set([...SECRET_HEADERS, ...secretHeaders()]),
      parameters: secretParameters(exchange.listener.bind),
    };
    const trace = new RequestDebugTrace(exchange, caught, masks, () => void this.active--);
    trace.record({ type: "requestStarted" });
    trace.request("initial request");
    return trace;
  }

  /** Ends all watches, with the thread. */
  close(): void {
    for (const watch of this.#open) watch.close();
  }

  #remove(watch: Watch): void {
    this.#waiting.delete(watch);
    this.isWaiting = this.#waiting.size > 0;
  }
}

/** An expression that fails on a request does not choose it. */
function isChosen(chooses: Expression, scope: Scope): boolean {
  try {
    return chooses.evaluate(scope) === true;
  } catch {
    return false;
  }
}
