/**
 * Wraps the steps of a chain for a traced request: each one is shown when it lets the request pass, answers or fails.
 * ChainRunner calls it when it enters a chain; requests that are not traced run the chain as it is.
 */
import type { DebugTrace, PolicyPhase } from "../exchange/debug-trace.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { MaybePromise, Next, Reply, RoutedExchange } from "../exchange/exchange.ts";
import type { Middleware } from "../policies/policy.ts";
import type { Chain } from "./chain-runner.ts";

export function traceChain(chain: Chain, exchange: RoutedExchange, debug: DebugTrace): Chain {
  const { middlewares, origins } = chain;
  // The first chain of a Bind has a terminal only, which finds the listener.
  if (exchange.listener.name === "" && middlewares.length === 0) return chain;
  const effectivePolicy = middlewares.map(({ name }, at) => ({ policy: name, origin: origins?.[at] }));
  debug.record({ type: "policySelection", phase: phaseOf(exchange), effectivePolicy });
  return {
    ...chain,
    middlewares: middlewares.map((middleware, at) => {
      const later = middlewares.slice(at + 1).map(({ name }) => name);
      return traceStep(middleware, { debug, scope: scopeOf(exchange, origins?.[at]), later });
    }),
  };
}

/** The policies of the route are known once a route is, and those of one backendRef once its backend is. */
function phaseOf({ route, backend }: RoutedExchange): PolicyPhase {
  if (route === undefined) return "gateway";
  return backend === undefined ? "route" : "subBackend";
}

function scopeOf({ route, listener }: RoutedExchange, origin: string | undefined): string[] {
  const place =
    route === undefined ? `listener ${listener.name}` : `${route.kind} ${route.namespace}/${route.name} ${route.rule}`;
  return origin === undefined ? [place] : [place, origin];
}

interface StepTrace {
  readonly debug: DebugTrace;
  readonly scope: readonly string[];
  /** Names of the steps that do not run when this one answers. */
  readonly later: readonly string[];
}

function traceStep(middleware: Middleware<RoutedExchange>, trace: StepTrace): Middleware<RoutedExchange> {
  return (exchange, next) => {
    const step = new TracedStep(middleware.name, trace, next);
    try {
      const reply = middleware(exchange, step.next.bind(step));
      return reply instanceof Promise
        ? reply.then(step.answered.bind(step), step.failed.bind(step))
        : step.answered(reply);
    } catch (error) {
      return step.failed(error);
    }
  };
}

/** One run of one step, which is shown once: when it calls the next one, or when it ends without that. */
class TracedStep {
  readonly #name: string;
  readonly #trace: StepTrace;
  readonly #next: Next;
  readonly #startedAtMs: number = performance.now();
  #isShown = false;

  constructor(name: string, trace: StepTrace, next: Next) {
    this.#name = name;
    this.#trace = trace;
    this.#next = next;
  }

  next(): MaybePromise<Reply> {
    this.#show({ outcome: "continued" });
    return this.#next();
  }

  answered(reply: Reply): Reply {
    if (this.#show({ outcome: "answered", status: reply.status })) this.#showSkipped();
    return reply;
  }

  failed(error: unknown): never {
    const details =
      error instanceof ProxyError
        ? { outcome: "refused", error: error.code, status: error.status }
        : { outcome: "failed", error: "internal" };
    if (this.#show(details, "error")) this.#showSkipped();
    throw error;
  }

  /** @returns false when the step has been shown before: what comes later is the error or answer of another one */
  #show(details: unknown, severity: "success" | "error" = "success"): boolean {
    if (this.#isShown) return false;
    this.#isShown = true;
    const { debug, scope } = this.#trace;
    const result = { type: "apply", details, snapshot: debug.state() } as const;
    debug.record({ type: "policy", kind: this.#name, result }, { startedAtMs: this.#startedAtMs, severity, scope });
    return true;
  }

  #showSkipped(): void {
    const { debug, later, scope } = this.#trace;
    const reason = `${this.#name} ended the request before`;
    for (const kind of later)
      debug.record({ type: "policy", kind, result: { type: "skip", reason } }, { scope: scope.slice(0, 1) });
  }
}
