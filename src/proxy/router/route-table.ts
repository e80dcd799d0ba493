/**
 * The HTTP routes in force. It binds the rules of each route to the listeners that the route names, with the policies
 * of all levels, and holds the backend handles of the bound rules. `Configuration` puts, places and removes routes.
 */
import type { Listener } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { acceptsTrafficPolicies } from "../../ir/keys.ts";
import type { BackendRegistry } from "../backends/registry.ts";
import type { ListenerTable } from "./listener-table.ts";
import { routeLevels, type ChainLink } from "./bind-chain.ts";
import { bindRule, type BoundRule, type RulePlace } from "./bind-rule.ts";
import type { DelegationTable } from "./delegation.ts";
import { explainRoute, type ExplainedPlace, type ExplainedRoute } from "./explain-route.ts";
import type { CompiledFilters } from "../pipeline/filters.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import { candidatesOf, type CompiledRoute, type CompiledRule } from "./route.ts";

const NONE: ReadonlySet<string> = new Set();

interface LinkedRoute {
  readonly route: CompiledRoute;
  /** Bound rules per listener; their backend handles are released with them. */
  readonly bound: Map<string, readonly BoundRule[]>;
}

/** An explanation follows no further chains of delegation to a route once it has this many. */
const MAX_CHAINS = 256;

export interface RouteTableOptions {
  readonly policies: PolicySet;
  readonly backends: BackendRegistry;
  readonly listeners: ListenerTable;
  readonly delegations: DelegationTable;
}

export class RouteTable {
  readonly #options: RouteTableOptions;
  readonly #routes = new Map<string, LinkedRoute>();
  readonly #ofListener = new Map<string, Set<string>>();
  /** Keys of routes, by the key of a backend that traffic policies may target. */
  readonly #ofBackend = new Map<string, Set<string>>();
  /** Keys of routes that delegate, by group. */
  readonly #delegators = new Map<string, Set<string>>();

  constructor(options: RouteTableOptions) {
    this.#options = options;
  }

  /** Returns the keys of routes that name a listener, even one that does not exist yet. */
  ofListener(listener: string): ReadonlySet<string> {
    return this.#ofListener.get(listener) ?? NONE;
  }

  /** Returns the keys of routes whose chains depend on the traffic policies of a backend. */
  ofBackend(backend: string): ReadonlySet<string> {
    return this.#ofBackend.get(backend) ?? NONE;
  }

  /** Returns the keys of the listeners that lead to a route, also through routes that delegate to it. */
  listenersOf(route: string): string[] {
    const listeners: string[] = [];
    const routes = new Set([route]);
    for (const key of routes) {
      const { parents = [], groups = [] } = this.#routes.get(key)?.route.message ?? {};
      listeners.push(...parents.map(({ listener }) => listener));
      for (const group of groups) for (const parent of this.#delegators.get(group) ?? []) routes.add(parent);
    }
    return listeners;
  }

  /**
   * Replaces the route. It serves once `link` has bound its rules.
   * @throws ConfigError when the data plane cannot execute a filter; the former version then stays in force
   */
  put(route: CompiledRoute): void {
    const { key, parents } = route.message;
    this.#options.delegations.check(route);
    this.#unlink(key);
    this.#routes.set(key, { route, bound: new Map() });
    for (const { listener } of parents) add(this.#ofListener, listener, key);
    for (const backend of governedBackends(route)) add(this.#ofBackend, backend, key);
    for (const group of groupsOf(route)) add(this.#delegators, group, key);
    this.#options.delegations.join(route);
  }

  remove(key: string): void {
    this.#unlink(key);
    this.#options.delegations.drop(key);
  }

  #unlink(key: string): void {
    const linked = this.#routes.get(key);
    if (linked === undefined) return;
    this.#routes.delete(key);
    for (const listener of linked.bound.keys()) this.#options.listeners.get(listener)?.router.remove(key);
    for (const { listener } of linked.route.message.parents) take(this.#ofListener, listener, key);
    for (const backend of governedBackends(linked.route)) take(this.#ofBackend, backend, key);
    for (const group of groupsOf(linked.route)) take(this.#delegators, group, key);
    this.#options.delegations.leave(linked.route);
    this.#release([...linked.bound.values()].flat());
  }

  /**
   * Binds the rules again after a change of the route, of one of its listeners or of a policy above it. The new handles
   * are acquired before the old ones are released, so that a backend in use by both is not rebuilt.
   */
  link(key: string): void {
    const linked = this.#routes.get(key);
    if (linked === undefined) return;
    this.#options.delegations.outdate(key);
    const { route, bound } = linked;
    const before = [...bound.values()].flat();
    bound.clear();
    for (const { listener: name, hostnames } of route.message.parents) {
      const listener = this.#options.listeners.get(name);
      if (listener === undefined) continue;
      const rules = route.rules.map((rule) => this.#bind(rule, key, listener.message, hostnames));
      bound.set(name, rules);
      listener.router.put(key, hostnames, candidatesOf(route, rules));
    }
    this.#release(before);
  }

  /**
   * Explains the routes of a name, of each kind, on each listener that they are bound to, and for each chain of
   * delegation that leads to them.
   * @param name "namespace/name"
   */
  explain(name: string, backendOf: ExplainedPlace["backendOf"]): ExplainedRoute[] {
    const { policies, backends } = this.#options;
    const behind: ExplainedPlace["behind"] = (key) => backends.behind(key);
    return [...this.#routes].flatMap(([key, { route }]) =>
      route.name !== name
        ? []
        : this.#chainsTo(key).flatMap((via) =>
            this.#outerOf(via[0]?.routeKey ?? key).map((outer) =>
              explainRoute(route, { ...outer, policies, backendOf, behind, via }),
            ),
          ),
    );
  }

  /** Returns the listeners that a route is bound to, with the policies above it there. */
  #outerOf(key: string): Pick<ExplainedPlace, "listener" | "outer">[] {
    const { listeners } = this.#options;
    return [...(this.#routes.get(key)?.bound.keys() ?? [])].flatMap((listener) => {
      const message = listeners.get(listener)?.message;
      return message === undefined ? [] : [{ listener, outer: listeners.levels(message) }];
    });
  }

  /** Returns the chains of delegation that lead to a route, parent first; an empty one is the route's own attachment. */
  #chainsTo(key: string): ChainLink[][] {
    const chains: ChainLink[][] = [[]];
    for (let at = 0; at < chains.length && chains.length < MAX_CHAINS; at++) {
      const chain = chains[at] ?? [];
      const isNew = ({ routeKey }: ChainLink): boolean =>
        routeKey !== key && chain.every((link) => link.routeKey !== routeKey);
      const parents = this.#parentsOf(chain[0]?.routeKey ?? key).filter(isNew);
      chains.push(...parents.slice(0, MAX_CHAINS).map((parent) => [parent, ...chain]));
    }
    return chains;
  }

  /** Returns the rules that delegate to a route. */
  #parentsOf(key: string): ChainLink[] {
    const groups = this.#routes.get(key)?.route.message.groups ?? [];
    return groups.flatMap((group) =>
      [...(this.#delegators.get(group) ?? [])].flatMap((routeKey) => {
        const rules = this.#routes.get(routeKey)?.route.rules ?? [];
        return rules.flatMap((compiled) => (delegatesTo(compiled, group) ? [{ routeKey, compiled }] : []));
      }),
    );
  }

  /** @param hostnames of the route on this listener; empty for every host of it */
  #bind(
    rule: CompiledRoute["rules"][number],
    routeKey: string,
    listener: Listener,
    hostnames: readonly string[],
  ): BoundRule {
    const info = { ...rule.info, namesHost: listener.hostname !== "" || hostnames.length > 0 };
    return bindRule({ ...rule, info }, this.#placeOf(rule, routeKey, listener));
  }

  #placeOf(rule: CompiledRoute["rules"][number], routeKey: string, listener: Listener): RulePlace {
    const { policies, backends, listeners } = this.#options;
    const levels = routeLevels({ routeKey, compiled: rule }, policies);
    return { policies, backends, routeKey, outer: listeners.levels(listener), levels };
  }

  #release(rules: readonly BoundRule[]): void {
    for (const { slots } of rules) for (const slot of slots) this.#options.backends.release(slot);
  }
}

function groupsOf({ rules }: CompiledRoute): Set<string> {
  return new Set(rules.flatMap(({ delegation }) => delegation?.groups.map(({ key }) => key) ?? []));
}

/** Returns the backends and mirrors of a route that traffic policies may target. */
function governedBackends({ rules }: CompiledRoute): Set<string> {
  const keys = rules.flatMap(({ backends, filters }) => [
    ...backends.map(({ message }) => message.backend),
    ...[filters, ...backends.map((backend) => backend.filters)].flatMap(mirrorsOf),
  ]);
  return new Set(keys.filter(acceptsTrafficPolicies));
}

function mirrorsOf({ mirrors }: CompiledFilters): string[] {
  return mirrors.map(({ backend }) => backend);
}

function delegatesTo({ delegation }: CompiledRule, group: string): boolean {
  return delegation?.groups.some(({ key }) => key === group) === true;
}

function add(index: Map<string, Set<string>>, at: string, key: string): void {
  const keys = index.get(at);
  if (keys === undefined) index.set(at, new Set([key]));
  else keys.add(key);
}

function take(index: Map<string, Set<string>>, at: string, key: string): void {
  const keys = index.get(at);
  keys?.delete(key);
  if (keys?.size === 0) index.delete(at);
}
