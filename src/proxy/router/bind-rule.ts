/**
 * Binds a compiled rule to a listener: merges and composes its policies, acquires its backends and builds the terminal
 * that picks one by weight. The route tables call this when a route, policy or backend changes, never during a request.
 */
import type { HttpRule } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { DebugTrace } from "../exchange/debug-trace.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Reply } from "../exchange/exchange.ts";
import type { BackendRegistry, BackendHandle } from "../backends/registry.ts";
import { createPicker } from "../balancing/select.ts";
import type { CompiledRule } from "./route.ts";
import { callBackend } from "../pipeline/attempts.ts";
import { compose, type InlineFilters } from "../pipeline/compose.ts";
import type { CompiledFilters } from "../pipeline/filters.ts";
import { Mirror, startMirrors } from "../pipeline/mirror.ts";
import type { CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import type { HttpExchange, RequestDestination } from "../pipeline/http-exchange.ts";
import type { Chain, ChainTerminal } from "../pipeline/chain-runner.ts";

export interface BoundRule extends RequestDestination {
  /** Key of its route. */
  readonly routeKey: string;
  readonly compiled: CompiledRule;
  readonly info: CompiledRule["info"];
  readonly chain: Chain;
  readonly backendTimeoutMs: number | undefined;
  /** Removes fields of a request that only policies of the route may set. */
  dropClaims(exchange: HttpExchange): void;
  /** Returns true when a policy of the rule, or an MCP backend, answers requests for OAuth metadata. */
  servesMetadata(): boolean;
  /** The owner of the rule releases these when the rule is no longer in force. */
  readonly slots: readonly BackendHandle[];
}

export interface RulePlace {
  readonly policies: PolicySet;
  readonly backends: BackendRegistry;
  readonly routeKey: string;
  /** Policies of the Gateway, listener, route and rule, in this order; those of every route of a chain of delegation. */
  readonly levels: readonly (readonly CompiledPolicy[])[];
  /** Stands in place of the rule's own timeout of a call, where a chain of delegation has one. */
  readonly backendTimeoutMs?: number | undefined;
}

/** Names the user that a caller of an agent runtime acts for, so a client must not choose it. */
const RUNTIME_USER = "x-amzn-bedrock-agentcore-runtime-user-id";

export function bindRule(rule: CompiledRule, place: RulePlace): BoundRule {
  const { message, info, filters } = rule;
  const chain = compose(place.policies, place.levels, false, inlineOf(filters, place.routeKey, message));
  const slots: BackendHandle[] = [];
  const end = terminalOf(rule, place, slots);
  const keys = new Set(rule.backends.map(({ message: { backend } }) => backend));
  return {
    routeKey: place.routeKey,
    compiled: rule,
    // Evaluated for each error instead of once: a backend that changes its kind is swapped inside its handle.
    servesModels: () => slots.some(({ backendKey, info }) => info.type === "ai" && keys.has(backendKey)),
    dropClaims({ requestHeaders }) {
      if (slots.some((slot) => slot.info.type === "agentRuntime")) requestHeaders.remove(RUNTIME_USER);
    },
    servesMetadata: () => chain.servesMetadata || slots.some((slot) => slot.info.type === "mcp"),
    info,
    chain: { middlewares: chain.middlewares, terminal: end, captureBytes: chain.captureBytes, origins: chain.origins },
    backendTimeoutMs: positive(place.backendTimeoutMs ?? message.backendRequestTimeoutMs),
    slots,
  };
}

/** @param rule the fields that a rule has besides filters; omitted for a backendRef, which has filters only */
export function inlineOf(
  { requestHeaders, responseHeaders, cors, middlewares }: CompiledFilters,
  owner: string,
  rule?: HttpRule,
): InlineFilters {
  const { requestTimeoutMs, retry } = rule ?? {};
  return { owner, requestHeaders, responseHeaders, cors, requestTimeoutMs, retry, middlewares };
}

function terminalOf(rule: CompiledRule, place: RulePlace, slots: BackendHandle[]): ChainTerminal {
  const { invalidReason } = rule.message;
  if (invalidReason !== "") return failing(invalidReason, "route_invalid");
  const shared = mirrorsOf(rule.filters, place, slots);
  const choices = rule.backends
    .filter(({ message }) => message.group === "")
    .map(({ message, filters }) => {
      const mirrors = [...shared, ...mirrorsOf(filters, place, slots)];
      return {
        weight: message.weight,
        value: backendTerminal(message.backend, message.invalidReason, { filters, mirrors, place, slots }),
      };
    });
  const pick = createPicker(choices);
  return (exchange, run) => {
    const chosen = pick();
    if (chosen === undefined) throw new ProxyError("backend_invalid", { detail: "no backend with a weight" });
    return chosen(exchange, run);
  };
}

function mirrorsOf(
  { mirrors }: CompiledFilters,
  { policies, backends, levels }: RulePlace,
  slots: BackendHandle[],
): Mirror[] {
  return mirrors.map((message) => {
    const slot = backends.acquire(message.backend, levels);
    slots.push(slot);
    return new Mirror(message, slot, policies);
  });
}

interface BackendPlace {
  readonly filters: CompiledFilters;
  readonly mirrors: readonly Mirror[];
  readonly place: RulePlace;
  readonly slots: BackendHandle[];
}

function backendTerminal(
  key: string,
  invalidReason: string,
  { filters, mirrors, place, slots }: BackendPlace,
): ChainTerminal {
  if (key === "" || invalidReason !== "") return failing(invalidReason, "backend_invalid");
  const slot = place.backends.acquire(key, place.levels);
  slots.push(slot);
  const call: ChainTerminal = (exchange) => {
    exchange.backend = slot.info;
    if (mirrors.length > 0) startMirrors(mirrors, exchange);
    return exchange.debug === undefined ? callBackend(exchange, slot) : callTraced(exchange, exchange.debug, slot);
  };
  const { middlewares, origins } = compose(place.policies, [], false, inlineOf(filters, place.routeKey));
  if (middlewares.length === 0) return call;
  const chain: Chain = { middlewares, terminal: call, captureBytes: undefined, origins };
  return (exchange, run) => {
    exchange.backend = slot.info;
    return run.enter(chain);
  };
}

async function callTraced(exchange: HttpExchange, debug: DebugTrace, slot: BackendHandle): Promise<Reply> {
  debug.request("route policies");
  const reply = await callBackend(exchange, slot);
  debug.response("backend response ready", reply);
  return reply;
}

function failing(detail: string, code: "route_invalid" | "backend_invalid"): ChainTerminal {
  return () => {
    throw new ProxyError(code, { detail });
  };
}

/** The Gateway API uses zero for "no limit" (GEP-1742). */
function positive(ms: number | undefined): number | undefined {
  return ms === undefined || ms === 0 ? undefined : ms;
}
