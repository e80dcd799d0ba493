/**
 * Binds the rules of a chain of delegation into one rule: the policies of every route of the chain, parent first, and
 * the backends of the last one. `delegation.ts` calls it when a request first takes a chain, and `route-table.ts` asks
 * it for the levels when operators want a route explained.
 *
 * Of each chain the more specific route wins, unit by unit: Gateway, listener, then for each route its policies, those
 * of the rule, and the rule's own filters.
 */
import type { BackendRegistry } from "../backends/registry.ts";
import type { CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import { inheritFilters } from "../pipeline/inherited-filters.ts";
import { bindRule, inlineOf, type BoundRule } from "./bind-rule.ts";
import type { Candidate } from "./precedence.ts";
import type { CompiledRule } from "./route.ts";

/** A rule of one route of a chain. */
export interface ChainLink {
  readonly routeKey: string;
  readonly compiled: CompiledRule;
}

type Level = readonly CompiledPolicy[];

export interface ChainPlace {
  readonly policies: PolicySet;
  readonly backends: BackendRegistry;
  /** Policies above all routes of the listener. */
  readonly outer: readonly Level[];
  /** Whether the listener or the first route names the hosts that it serves. */
  readonly namesHost: boolean;
}

/** @param links at least two, parent first */
export function bindChain(links: readonly Candidate<ChainLink>[], place: ChainPlace): Candidate<BoundRule> {
  const { policies, backends, outer } = place;
  // A chain is never empty.
  const last = links.at(-1) as Candidate<ChainLink>;
  const { routeKey, compiled } = last.rule;
  const levels = chainLevels(
    links.map(({ rule }) => rule),
    policies,
  );
  const namesHost = place.namesHost || compiled.info.namesHost === true;
  const rewriting = links.findLast(({ rule }) => rule.compiled.filters.middlewares.length > 0) ?? last;
  const mirroring = links.findLast(({ rule }) => rule.compiled.filters.mirrors.length > 0);
  const timed = links.findLast(({ rule }) => rule.compiled.message.backendRequestTimeoutMs !== undefined);
  const rule: CompiledRule = {
    ...compiled,
    info: { ...compiled.info, namesHost },
    filters: {
      ...compiled.filters,
      middlewares: rewriting.rule.compiled.filters.middlewares,
      mirrors: mirroring?.rule.compiled.filters.mirrors ?? [],
    },
  };
  const backendTimeoutMs = timed?.rule.compiled.message.backendRequestTimeoutMs;
  // An inherited rewrite replaces the prefix that the rule which says it has matched, and not that of the last rule.
  return {
    ...last,
    match: rewriting.match,
    rule: bindRule(rule, { policies, backends, routeKey, outer, levels, backendTimeoutMs }),
  };
}

/**
 * Returns the policies of the routes of a chain, less specific first: those of each route, of its rule, and, except for
 * the last, the filters of the rule.
 */
export function chainLevels(links: readonly ChainLink[], policies: PolicySet): Level[] {
  return links.flatMap((link, at) => {
    const own = routeLevels(link, policies);
    return at === links.length - 1 ? own : [...own, [inheritedBy(link, policies)]];
  });
}

/** Returns the policies of a route and those of one of its rules. */
export function routeLevels({ routeKey, compiled }: ChainLink, policies: PolicySet): Level[] {
  const { name } = compiled.message;
  return [policies.at(`route:${routeKey}`), name === "" ? [] : policies.at(`route:${routeKey}#${name}`)];
}

/**
 * Returns what members inherit from the filters and fields of a rule.
 * @throws ConfigError for a filter that the data plane cannot execute
 */
export function inheritedBy({ routeKey, compiled }: ChainLink, policies: PolicySet): CompiledPolicy {
  return inheritFilters(inlineOf(compiled.filters, routeKey, compiled.message), compiled.info.rule, policies);
}
