/**
 * The HTTP routes in force. It binds the rules of each route to the listeners that the route names, with the policies
 * of all levels, and holds the backend handles of the bound rules. `Configuration` puts, places and removes routes.
 */
import type { Listener } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { BackendRegistry } from "../backends/registry.ts";
import type { ListenerTable } from "./listener-table.ts";
import type { ExplainedPolicy } from "../pipeline/explain.ts";
import { bindRule, explainRule, type BoundRule, type RulePlace } from "./bind-rule.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import type { Candidate } from "./precedence.ts";
import type { CompiledRoute } from "./route.ts";

const NONE: ReadonlySet<string> = new Set();

interface LinkedRoute {
  readonly route: CompiledRoute;
  /** Bound rules per listener; their backend handles are released with them. */
  readonly bound: Map<string, readonly BoundRule[]>;
}

/** A route on one of its listeners, for operators. */
export interface ExplainedRoute {
  readonly route: string;
  readonly listener: string;
  readonly rules: readonly ExplainedRule[];
}

interface ExplainedRule {
  /** Name of the rule, or its position; as in the access log. */
  readonly rule: string;
  /** Why every request to the rule is answered with an error, where that is so. */
  readonly refuses?: string;
  readonly policies: readonly ExplainedPolicy[];
}

export interface RouteTableOptions {
  readonly policies: PolicySet;
  readonly backends: BackendRegistry;
  readonly listeners: ListenerTable;
}

export class RouteTable {
  readonly #options: RouteTableOptions;
  readonly #routes = new Map<string, LinkedRoute>();
  readonly #ofListener = new Map<string, Set<string>>();

  constructor(options: RouteTableOptions) {
    this.#options = options;
  }

  /** Returns the keys of routes that name a listener, even one that does not exist yet. */
  ofListener(listener: string): ReadonlySet<string> {
    return this.#ofListener.get(listener) ?? NONE;
  }

  /** Returns the keys of the listeners that a route names. */
  listenersOf(route: string): string[] {
    return this.#routes.get(route)?.route.message.parents.map(({ listener }) => listener) ?? [];
  }

  /** Replaces the route. It serves once `place` has bound its rules. */
  put(route: CompiledRoute): void {
    const { key, parents } = route.message;
    this.remove(key);
    this.#routes.set(key, { route, bound: new Map() });
    for (const { listener } of parents) {
      const keys = this.#ofListener.get(listener);
      if (keys === undefined) this.#ofListener.set(listener, new Set([key]));
      else keys.add(key);
    }
  }

  remove(key: string): void {
    const linked = this.#routes.get(key);
    if (linked === undefined) return;
    this.#routes.delete(key);
    for (const listener of linked.bound.keys()) this.#options.listeners.get(listener)?.router.remove(key);
    for (const { listener } of linked.route.message.parents) {
      const keys = this.#ofListener.get(listener);
      keys?.delete(key);
      if (keys?.size === 0) this.#ofListener.delete(listener);
    }
    this.#release([...linked.bound.values()].flat());
  }

  /**
   * Binds the rules again after a change of the route, of one of its listeners or of a policy above it. The new handles
   * are acquired before the old ones are released, so that a backend in use by both is not rebuilt.
   */
  link(key: string): void {
    const linked = this.#routes.get(key);
    if (linked === undefined) return;
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
   * Explains the routes of a name, of each kind and on each listener that they are bound to.
   * @param name "namespace/name"
   */
  explain(name: string): ExplainedRoute[] {
    const routes = [...this.#routes].filter(([, { route }]) => route.name === name);
    return routes.flatMap(([key, { route, bound }]) =>
      [...bound.keys()].flatMap((listener) => {
        const message = this.#options.listeners.get(listener)?.message;
        return message === undefined ? [] : [this.#explain(route, key, message)];
      }),
    );
  }

  #explain(route: CompiledRoute, key: string, listener: Listener): ExplainedRoute {
    const rules = route.rules.map((rule) => {
      const { invalidReason } = rule.message;
      return {
        rule: rule.info.rule,
        ...(invalidReason === "" ? {} : { refuses: invalidReason }),
        policies: explainRule(rule, this.#placeOf(rule, key, listener)),
      };
    });
    const kind = route.message.object?.kind ?? "HTTPRoute";
    return { route: `${kind} ${route.name}`, listener: listener.key, rules };
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
    const own = rule.message.name === "" ? [] : policies.at(`route:${routeKey}#${rule.message.name}`);
    const levels = [...listeners.levels(listener), policies.at(`route:${routeKey}`), own];
    return { policies, backends, routeKey, levels };
  }

  #release(rules: readonly BoundRule[]): void {
    for (const { slots } of rules) for (const slot of slots) this.#options.backends.release(slot);
  }
}

/** @param bound the bound rules, in the order of `rules` */
function candidatesOf({ message, rules, name }: CompiledRoute, bound: readonly BoundRule[]): Candidate<BoundRule>[] {
  const { createdAtMs } = message;
  return bound.flatMap((rule, ruleIndex) =>
    (rules[ruleIndex]?.matches ?? []).map((match, matchIndex) => ({
      match,
      createdAtMs,
      routeName: name,
      ruleIndex,
      matchIndex,
      rule,
    })),
  );
}
