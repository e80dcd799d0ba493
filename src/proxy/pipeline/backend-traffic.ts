/**
 * Runs the traffic policies of an InferencePool behind a provider of language models. A rule that names the pool itself
 * runs them in its own chain (router/bind-rule.ts). Behind a provider the pool is known only once an attempt has chosen
 * it, so they run then: after the policies of the route, for this attempt, and not for those that another provider
 * serves. Errors pass through unchanged, because a retry may lead to another provider.
 */
import type { Admit } from "../backends/admission.ts";
import type { Reply, RoutedExchange } from "../exchange/exchange.ts";
import { rememberRequest } from "../exchange/restore-request.ts";
import type { CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import { compose } from "./compose.ts";

interface CompiledTraffic {
  /** All policies on the backend when it was compiled; another list means that they have changed. */
  readonly all: readonly CompiledPolicy[];
  readonly admit: Admit | undefined;
}

export class BackendTraffic {
  readonly #policies: PolicySet;
  readonly #compiled = new Map<string, CompiledTraffic>();

  constructor(policies: PolicySet) {
    this.#policies = policies;
  }

  /**
   * Returns what runs around an attempt to a backend; undefined when no traffic policy targets it.
   * @param backend its key
   */
  of(backend: string): Admit | undefined {
    const all = this.#policies.at(`backend:${backend}`);
    if (all.length === 0) {
      this.#compiled.delete(backend);
      return undefined;
    }
    const known = this.#compiled.get(backend);
    if (known?.all === all) return known.admit;
    const traffic = this.#policies.trafficOf(backend);
    const admit = traffic.length === 0 ? undefined : compileTraffic(traffic, this.#policies);
    this.#compiled.set(backend, { all, admit });
    return admit;
  }
}

function compileTraffic(level: readonly CompiledPolicy[], policies: PolicySet): Admit {
  const { middlewares, captureBytes } = compose(policies, [level], false);
  const step = async (exchange: RoutedExchange, send: () => Promise<Reply>, at: number): Promise<Reply> => {
    const middleware = middlewares[at];
    return middleware === undefined ? send() : middleware(exchange, () => step(exchange, send, at + 1));
  };
  return async (exchange, send) => {
    if (captureBytes !== undefined) await exchange.bufferRequestBody(captureBytes || exchange.requestLimitBytes);
    const restore = rememberRequest(exchange);
    try {
      return await step(exchange, send, 0);
    } finally {
      restore();
    }
  };
}
