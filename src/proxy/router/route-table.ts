/** The HTTP routes in force: their rules bound to the listeners that they belong to, and the backends that these hold. */
import type { Listener } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { BackendRegistry } from "../backends/registry.ts";
import type { ListenerTable } from "./listener-table.ts";
import { bindRule, type BoundRule } from "../pipeline/bind-rule.ts";
import type { PolicySet } from "../pipeline/policy-set.ts";
import type { Candidate } from "./precedence.ts";
import type { CompiledRoute } from "./route.ts";

const NONE: ReadonlySet<string> = new Set();

interface PlacedRoute {
  readonly route: CompiledRoute;
  /** Per listener, so that each can be taken back. */
  readonly bound: Map<string, readonly BoundRule[]>;
}

export interface RouteTableOptions {
  readonly policies: PolicySet;
  readonly backends: BackendRegistry;
  readonly listeners: ListenerTable;
}

export class RouteTable {
  readonly #options: RouteTableOptions;
  readonly #routes = new Map<string, PlacedRoute>();
  readonly #ofListener = new Map<string, Set<string>>();

  constructor(options: RouteTableOptions) {
    this.#options = options;
  }

  /** Keys of the routes that name a listener, whether it is there or not. */
  ofListener(listener: string): ReadonlySet<string> {
    return this.#ofListener.get(listener) ?? NONE;
  }

  /** Keys of the listeners that a route names. */
  listenersOf(route: string): string[] {
    return this.#routes.get(route)?.route.message.parents.map(({ listener }) => listener) ?? [];
  }

  /** In place of what the route was before; serves once it is placed. */
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
    const placed = this.#routes.get(key);
    if (placed === undefined) return;
    this.#routes.delete(key);
    for (const listener of placed.bound.keys()) this.#options.listeners.get(listener)?.router.remove(key);
    for (const { listener } of placed.route.message.parents) {
      const keys = this.#ofListener.get(listener);
      keys?.delete(key);
      if (keys?.size === 0) this.#ofListener.delete(listener);
    }
    this.#release([...placed.bound.values()].flat());
  }

  /** Binds the rules anew, because the route, a listener of it or a policy over it has changed. */
  place(key: string): void {
    const placed = this.#routes.get(key);
    if (placed === undefined) return;
    const { route, bound } = placed;
    const before = [...bound.values()].flat();
    bound.clear();
    for (const { listener: name, hostnames } of route.message.parents) {
      const listener = this.#options.listeners.get(name);
      if (listener === undefined) continue;
      const rules = route.rules.map((rule) => this.#bind(rule, key, listener.message));
      bound.set(name, rules);
      listener.router.put(key, hostnames, candidatesOf(route, rules));
    }
    this.#release(before);
  }

  #bind(rule: CompiledRoute["rules"][number], routeKey: string, listener: Listener): BoundRule {
    const { policies, backends, listeners } = this.#options;
    const own = rule.message.name === "" ? [] : policies.at(`route:${routeKey}#${rule.message.name}`);
    const levels = [...listeners.levels(listener), policies.at(`route:${routeKey}`), own];
    return bindRule(rule, { policies, backends, routeKey, levels });
  }

  #release(rules: readonly BoundRule[]): void {
    for (const { slots } of rules) for (const slot of slots) this.#options.backends.release(slot);
  }
}

/** @param bound one for each rule, in order */
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
