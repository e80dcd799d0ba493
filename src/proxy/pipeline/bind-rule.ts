/** A rule of a route in one place: its policies merged and composed, its backends taken, ready to serve a request. */
import { ProxyError } from "../errors.ts";
import type { BackendRegistry, BackendSlot } from "../backends/registry.ts";
import { createPicker } from "../backends/select.ts";
import type { CompiledRule } from "../router/route.ts";
import { callBackend } from "./attempts.ts";
import { compose, type InlineFilters } from "./compose.ts";
import type { CompiledFilters } from "./filters.ts";
import type { CompiledPolicy, PolicySet } from "./policy-set.ts";
import type { Stage, StageEnd } from "./run.ts";

export interface BoundRule {
  readonly info: CompiledRule["info"];
  readonly stage: Stage;
  readonly backendTimeoutMs: number | undefined;
  /** To be released when the rule is no longer in force. */
  readonly slots: readonly BackendSlot[];
}

export interface RulePlace {
  readonly policies: PolicySet;
  readonly backends: BackendRegistry;
  readonly routeKey: string;
  /** Gateway, listener, route, rule. */
  readonly levels: readonly (readonly CompiledPolicy[])[];
}

export function bindRule(rule: CompiledRule, place: RulePlace): BoundRule {
  const { message, info, filters } = rule;
  const chain = compose(place.policies, place.levels, false, inlineOf(filters, place, message.requestTimeoutMs));
  const slots: BackendSlot[] = [];
  const end = endOf(rule, place, slots);
  return {
    info,
    stage: { chain: chain.middlewares, end, captureBytes: chain.captureBytes },
    backendTimeoutMs: positive(message.backendRequestTimeoutMs),
    slots,
  };
}

function inlineOf(filters: CompiledFilters, { routeKey }: RulePlace, requestTimeoutMs?: number): InlineFilters {
  const { requestHeaders, responseHeaders, cors, middlewares } = filters;
  return { owner: routeKey, requestHeaders, responseHeaders, cors, requestTimeoutMs, middlewares };
}

function endOf(rule: CompiledRule, place: RulePlace, slots: BackendSlot[]): StageEnd {
  const { invalidReason } = rule.message;
  if (invalidReason !== "") return failing(invalidReason, "route_invalid");
  const choices = rule.backends.map(({ message, filters }) => ({
    weight: message.weight,
    value: backendStage(message.backend, message.invalidReason, { filters, place, slots }),
  }));
  const pick = createPicker(choices);
  return (exchange, run) => {
    const chosen = pick();
    if (chosen === undefined) throw new ProxyError("backend_invalid", { detail: "no backend with a weight" });
    return chosen(exchange, run);
  };
}

function backendStage(
  key: string,
  invalidReason: string,
  { filters, place, slots }: { filters: CompiledFilters; place: RulePlace; slots: BackendSlot[] },
): StageEnd {
  if (key === "" || invalidReason !== "") return failing(invalidReason, "backend_invalid");
  const slot = place.backends.acquire(key, place.levels);
  slots.push(slot);
  const call: StageEnd = (exchange) => {
    exchange.backend = slot.info;
    return callBackend(exchange, slot);
  };
  const { middlewares } = compose(place.policies, [], false, inlineOf(filters, place));
  if (middlewares.length === 0) return call;
  const stage: Stage = { chain: middlewares, end: call, captureBytes: 0 };
  return (exchange, run) => {
    exchange.backend = slot.info;
    return run.enter(stage);
  };
}

function failing(detail: string, code: "route_invalid" | "backend_invalid"): StageEnd {
  return () => {
    throw new ProxyError(code, { detail });
  };
}

/** Zero is "no limit" (Gateway API). */
function positive(ms: number | undefined): number | undefined {
  return ms === undefined || ms === 0 ? undefined : ms;
}
