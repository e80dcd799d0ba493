/**
 * Follows delegation. A rule may name a group of other routes in place of a backend; its requests then go to the rule
 * of the group that fits them best, whose backend may be a group again. `ListenerTable` calls it for each request whose
 * rule delegates, and `RouteTable` keeps the members of the groups.
 *
 *     listener ─▶ rule of a route ─▶ group ─▶ rule of a member ─▶ group ─▶ … ─▶ rule with a backend
 *
 * All rules are found before any of their policies runs, because a policy of a member may replace one of its parent
 * (bind-chain.ts). The rules of one chain are bound together at the first request that takes it: a tree has as many
 * chains as the product of its branches, so binding all of them when a route arrives would let one manifest fill the
 * memory.
 */
import type { BackendRegistry } from "../backends/registry.ts";
import { createPicker } from "../balancing/select.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import { bindChain, inheritedBy, type ChainLink } from "./bind-chain.ts";
import type { BoundRule } from "./bind-rule.ts";
import { ListenerRouter } from "./listener-router.ts";
import type { Routable } from "./match.ts";
import type { Candidate } from "./precedence.ts";
import { candidatesOf, type CompiledRoute, type CompiledRule, type RuleDelegation } from "./route.ts";

/** A longer chain is refused, which limits the look-ups of one request. */
export const MAX_DELEGATIONS = 32;

/** Bound chains beyond this number are dropped, oldest first, and bound again when they are needed. */
const MAX_BOUND_CHAINS = 16_384;

/** The listener that a request came to. */
export interface DelegationPlace {
  readonly key: string;
  /** Returns the policies above all routes of the listener. */
  levels(): readonly (readonly CompiledPolicy[])[];
}

/** A request whose rule is looked for. */
interface WantedRule {
  /** As `hostOf` returns it. */
  readonly host: string;
  /** Without the query. */
  readonly path: string;
  readonly request: Routable;
}

interface BoundChain {
  readonly found: Candidate<BoundRule>;
  readonly routes: readonly string[];
  /** A route of the chain has changed. The handles are kept until it is bound again, so that no backend is rebuilt. */
  isOutdated: boolean;
}

export interface DelegationTableOptions {
  readonly policies: PolicySet;
  readonly backends: BackendRegistry;
}

export class DelegationTable {
  readonly #options: DelegationTableOptions;
  readonly #groups = new Map<string, ListenerRouter<ChainLink>>();
  readonly #chains = new Map<string, BoundChain>();
  /** Keys of the bound chains, by route. */
  readonly #chainsOf = new Map<string, Set<string>>();

  constructor(options: DelegationTableOptions) {
    this.#options = options;
  }

  /**
   * Compiles what the members of a route would inherit and what it adds itself, to find errors before it replaces the
   * former version.
   * @throws ConfigError
   */
  check({ message: { key, groups }, rules }: CompiledRoute): void {
    for (const compiled of rules)
      if (groups.length > 0 || compiled.delegation !== undefined)
        inheritedBy({ routeKey: key, compiled }, this.#options.policies);
  }

  /** Makes a route a member of its groups. */
  join(route: CompiledRoute): void {
    const { key, groups, hostnames } = route.message;
    if (groups.length === 0) return;
    const links = route.rules.map((compiled): ChainLink => linkOf(key, compiled, hostnames.length > 0));
    const candidates = candidatesOf(route, links);
    for (const group of groups) {
      let router = this.#groups.get(group);
      if (router === undefined) this.#groups.set(group, (router = new ListenerRouter()));
      router.put(key, hostnames, candidates);
    }
  }

  /** Takes a route out of its groups. */
  leave({ message: { key, groups } }: CompiledRoute): void {
    for (const group of groups) {
      const router = this.#groups.get(group);
      router?.remove(key);
      if (router?.isEmpty === true) this.#groups.delete(group);
    }
  }

  /**
   * Binds the chains through a route again at their next use: the route has changed, or a policy or listener above it.
   */
  outdate(routeKey: string): void {
    for (const chain of this.#chainsOf.get(routeKey) ?? []) {
      const bound = this.#chains.get(chain);
      if (bound !== undefined) bound.isOutdated = true;
    }
  }

  /** Drops the chains through a route that is gone. */
  drop(routeKey: string): void {
    for (const chain of this.#chainsOf.get(routeKey) ?? []) this.#forget(chain);
  }

  /**
   * Follows the delegations of a rule to the rule that serves the request.
   * @param found the rule of the listener that the request matches
   * @returns undefined when no member of a group matches the request
   * @throws ProxyError route_invalid for a cycle, match_costly
   */
  follow(place: DelegationPlace, found: Candidate<BoundRule>, wanted: WantedRule): Candidate<BoundRule> | undefined {
    const links: Candidate<ChainLink>[] = [found];
    for (let last: Candidate<ChainLink> = found; last.rule.compiled.delegation !== undefined;) {
      const next = this.#choose(last.rule.compiled.delegation, wanted);
      if (next === "backend") break;
      if (next === undefined) return undefined;
      const leadsBack = links.some(({ rule }) => rule.routeKey === next.rule.routeKey);
      links.push(next);
      if (leadsBack || links.length > MAX_DELEGATIONS)
        throw new ProxyError("route_invalid", { detail: describeRefused(links, leadsBack) });
      last = next;
    }
    return links.length === 1 ? found : this.#bound(place, found, links);
  }

  /** Chooses by weight among the backends of the rule and those groups that have a rule for the request. */
  #choose(
    { groups, backendWeight }: RuleDelegation,
    { host, path, request }: WantedRule,
  ): Candidate<ChainLink> | "backend" | undefined {
    const choices: { weight: number; value: Candidate<ChainLink> | "backend" }[] = [];
    for (const { key, weight } of groups) {
      const value = this.#groups.get(key)?.find(host, path, request);
      if (value !== undefined) choices.push({ weight, value });
    }
    if (backendWeight > 0) choices.push({ weight: backendWeight, value: "backend" });
    return choices.length === 1 ? choices[0]?.value : createPicker(choices)();
  }

  #bound(
    place: DelegationPlace,
    found: Candidate<BoundRule>,
    links: readonly Candidate<ChainLink>[],
  ): Candidate<BoundRule> {
    const key = links.reduce(
      (chain, link) => `${chain} ${link.rule.routeKey}#${link.ruleIndex}.${link.matchIndex}`,
      place.key,
    );
    const before = this.#chains.get(key);
    if (before?.isOutdated === false) return before.found;
    const namesHost = found.rule.info.namesHost === true;
    const bound = bindChain(links, { ...this.#options, outer: place.levels(), namesHost });
    this.#forget(key);
    const routes = links.map(({ rule }) => rule.routeKey);
    this.#chains.set(key, { found: bound, routes, isOutdated: false });
    for (const route of routes) {
      const chains = this.#chainsOf.get(route);
      if (chains === undefined) this.#chainsOf.set(route, new Set([key]));
      else chains.add(key);
    }
    const [oldest] = this.#chains.keys();
    if (this.#chains.size > MAX_BOUND_CHAINS && oldest !== undefined) this.#forget(oldest);
    return bound;
  }

  #forget(chain: string): void {
    const bound = this.#chains.get(chain);
    if (bound === undefined) return;
    this.#chains.delete(chain);
    for (const route of bound.routes) {
      const chains = this.#chainsOf.get(route);
      chains?.delete(chain);
      if (chains?.size === 0) this.#chainsOf.delete(route);
    }
    for (const slot of bound.found.rule.slots) this.#options.backends.release(slot);
  }
}

function linkOf(routeKey: string, compiled: CompiledRule, namesHost: boolean): ChainLink {
  return { routeKey, compiled: { ...compiled, info: { ...compiled.info, namesHost } } };
}

function describeRefused(links: readonly Candidate<ChainLink>[], leadsBack: boolean): string {
  const names = links.map(({ routeName }) => routeName);
  if (leadsBack) return `delegation leads back: ${names.join(" → ")}`;
  return `more than ${MAX_DELEGATIONS} routes delegate to each other: ${names.slice(0, 3).join(" → ")} → …`;
}
