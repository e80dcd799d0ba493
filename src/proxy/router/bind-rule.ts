/**
 * Binds a compiled rule to a listener: merges and composes its policies, acquires its backends and builds the terminal
 * that picks one by weight. The route tables call this when a route, policy or backend changes, never during a request.
 *
 * Traffic policies on a backend, which an InferencePool may have, stand between those of the listener and those of the
 * route. Each such backend therefore has a chain of its own, and is picked before its chain runs:
 *
 *     rule without such a backend: chain ─▶ pick ─▶ call
 *     rule with one:               pick ─▶ chain of the backend ─▶ call
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
  /** Policies above all routes: those of the Gateway, port and listener. */
  readonly outer: readonly (readonly CompiledPolicy[])[];
  /** Policies of the route and of the rule; those of every route of a chain of delegation, parent first. */
  readonly levels: readonly (readonly CompiledPolicy[])[];
  /** Stands in place of the rule's own timeout of a call, where a chain of delegation has one. */
  readonly backendTimeoutMs?: number | undefined;
}

/** Names the user that a caller of an agent runtime acts for, so a client must not choose it. */
const RUNTIME_USER = "x-amzn-bedrock-agentcore-runtime-user-id";

export function bindRule(rule: CompiledRule, place: RulePlace): BoundRule {
  const { message, info } = rule;
  const slots: BackendHandle[] = [];
  const { chain, servesMetadata } = bindChainOf(rule, place, slots);
  const keys = new Set(rule.backends.map(({ message: { backend } }) => backend));
  return {
    routeKey: place.routeKey,
    compiled: rule,
    // Evaluated for each error instead of once: a backend that changes its kind is swapped inside its handle.
    servesModels: () => slots.some(({ backendKey, info }) => info.type === "ai" && keys.has(backendKey)),
    dropClaims({ requestHeaders }) {
      if (slots.some((slot) => slot.info.type === "agentRuntime")) requestHeaders.remove(RUNTIME_USER);
    },
    servesMetadata: () => servesMetadata || slots.some((slot) => slot.info.type === "mcp"),
    info,
    chain,
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

interface RuleChain {
  readonly chain: Chain;
  readonly servesMetadata: boolean;
}

function bindChainOf(rule: CompiledRule, place: RulePlace, slots: BackendHandle[]): RuleChain {
  const { message, filters } = rule;
  const { policies, outer, levels, routeKey } = place;
  const chainTo = (terminal: ChainTerminal, ofBackend: readonly CompiledPolicy[] = []): RuleChain => {
    const inline = inlineOf(filters, routeKey, message);
    const { servesMetadata, ...chain } = compose(policies, [...outer, ofBackend, ...levels], false, inline);
    return { chain: { ...chain, terminal }, servesMetadata };
  };
  if (message.invalidReason !== "") return chainTo(failing(message.invalidReason, "route_invalid"));
  const choices = backendChoices(rule, place, slots);
  if (choices.every(({ traffic }) => traffic.length === 0)) {
    const pick = createPicker(choices.map(({ weight, terminal }) => ({ weight, value: terminal })));
    return chainTo((exchange, run) => (pick() ?? withoutBackend)(exchange, run));
  }
  const chains = choices.map(({ weight, terminal, traffic }) => ({ weight, value: chainTo(terminal, traffic) }));
  const pick = createPicker(chains);
  const none = chainTo(withoutBackend).chain;
  return {
    chain: {
      middlewares: [],
      captureBytes: undefined,
      terminal: (_exchange, run) => run.enter(pick()?.chain ?? none),
    },
    servesMetadata: chains.some(({ value }) => value.servesMetadata),
  };
}

interface BackendChoice {
  readonly weight: number;
  readonly terminal: ChainTerminal;
  /** Traffic policies on the backend. */
  readonly traffic: readonly CompiledPolicy[];
}

function backendChoices(rule: CompiledRule, place: RulePlace, slots: BackendHandle[]): BackendChoice[] {
  const shared = mirrorsOf(rule.filters, place, slots);
  return rule.backends
    .filter(({ message }) => message.group === "")
    .map(({ message: { backend, weight, invalidReason }, filters }) => {
      const mirrors = [...shared, ...mirrorsOf(filters, place, slots)];
      return {
        weight,
        terminal: backendTerminal(backend, invalidReason, { filters, mirrors, place, slots }),
        traffic: place.policies.trafficOf(backend),
      };
    });
}

function withoutBackend(): never {
  throw new ProxyError("backend_invalid", { detail: "no backend with a weight" });
}

function mirrorsOf(
  { mirrors }: CompiledFilters,
  { policies, backends, outer, levels }: RulePlace,
  slots: BackendHandle[],
): Mirror[] {
  return mirrors.flatMap((message) => {
    if (policies.trafficOf(message.backend).length > 0) {
      // Those policies would refuse requests, charge limits or change the answer, and a copy has no client for that.
      policies.log.warn("mirror left out: traffic policies target its backend", { backend: message.backend });
      return [];
    }
    const slot = backends.acquire(message.backend, [...outer, ...levels]);
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
  const slot = place.backends.acquire(key, [...place.outer, ...place.levels]);
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
