/**
 * Chooses the model of a request by its name: a virtual model of exactly that name, else the first concrete one that
 * matches and that the client may use. Exact names come before patterns, and patterns with more text before others.
 */
import type { BackendDeps } from "../../backends/handler.ts";
import type { MaybePromise, RoutedExchange } from "../../exchange/exchange.ts";
import { ProxyError, type ProxyErrorCode } from "../../exchange/errors.ts";
import { holds } from "../../policies/shared/expression-support.ts";
import type { Endpoint } from "../call/endpoint.ts";
import type { JsonObject } from "../shared/json.ts";
import { setField } from "../policies/body-fields.ts";
import { ProviderGroups } from "../call/select.ts";
import type { CompiledCallout } from "./callout.ts";
import type { Choice, CompiledModels, ConcreteModel, Target, VirtualModel } from "./compile.ts";

/** The endpoint of the chosen model, and the name that it is asked for. */
export interface ChosenModel {
  readonly endpoint: Endpoint;
  readonly name: string;
}

/** A target of a failover: a copy of the model's endpoint that knows the name to ask it for. */
interface FailoverEndpoint extends Endpoint {
  readonly concrete: ConcreteModel;
  readonly name: string;
}

export class ModelRouter {
  readonly #deps: BackendDeps;
  readonly #concrete: readonly ConcreteModel[];
  readonly #byKey: ReadonlyMap<string, ConcreteModel>;
  readonly #virtual: ReadonlyMap<string, VirtualModel>;
  /** Keys of virtual models, to tell a target that is virtual from one that is not attached here. */
  readonly #virtualKeys: ReadonlySet<string>;
  readonly #failovers = new Map<VirtualModel, readonly (readonly FailoverEndpoint[])[]>();
  readonly #groups = new Map<VirtualModel, ProviderGroups<FailoverEndpoint>>();

  constructor({ concrete, virtual }: CompiledModels, deps: BackendDeps) {
    this.#deps = deps;
    this.#concrete = concrete.toSorted(bySpecificity);
    this.#byKey = new Map(concrete.map((model) => [model.key, model]));
    this.#virtualKeys = new Set(virtual.map(({ key }) => key));
    // The first of several virtual models of one name serves.
    this.#virtual = new Map(
      virtual
        .toSorted(byKey)
        .toReversed()
        .map((model) => [model.match, model]),
    );
    for (const model of virtual) {
      if (model.choice.kind !== "failover") continue;
      const groups = this.#failoverGroups(model.choice.groups);
      this.#failovers.set(model, groups);
      this.#groups.set(model, new ProviderGroups(groups));
    }
  }

  /**
   * @param name that the client asked for
   * @param body of the client, in which a callout may set fields
   * @throws ProxyError with a code of models
   */
  choose(name: string, body: JsonObject, exchange: RoutedExchange): MaybePromise<ChosenModel> {
    const virtual = this.#virtual.get(name);
    if (virtual === undefined) return this.#chooseConcrete(name, this.#concrete.filter(isPublic), exchange);
    const { choice } = virtual;
    if (choice.kind === "callout") return this.#chooseByCallout(choice.callout, body, exchange);
    if (choice.kind === "failover") return this.#chooseByHealth(virtual, exchange);
    const target = choice.kind === "weighted" ? this.#draw(choice.targets) : firstTrue(choice.targets, exchange);
    if (target === undefined)
      throw refuse("virtual_model_no_matching_target", `no condition of model "${virtual.match}" is true`);
    return this.#chooseTarget(target, exchange);
  }

  #chooseConcrete(name: string, models: readonly ConcreteModel[], exchange: RoutedExchange): ChosenModel {
    const matching = models.filter(({ match }) => matchesName(match, name));
    const [first] = matching;
    if (first === undefined) throw refuse("model_not_found", `model "${name}" not found`);
    const allowed = matching.find(({ authorization }) => authorization?.(exchange) === undefined);
    if (allowed === undefined) throw denied(name, first, exchange);
    exchange.tried?.push(allowed.endpoint);
    return { endpoint: allowed.endpoint, name };
  }

  /** Returns the models that a client may see, in the order of their names. */
  list(exchange: RoutedExchange): (ConcreteModel | VirtualModel)[] {
    const concrete = this.#concrete.filter(
      ({ isInternal, match, authorization }) =>
        !isInternal && !match.includes("*") && authorization?.(exchange) === undefined,
    );
    const byName = new Map<string, ConcreteModel | VirtualModel>();
    for (const model of concrete.toReversed()) byName.set(model.match, model);
    for (const model of this.#virtual.values()) byName.set(model.match, model);
    return [...byName.values()].sort((a, b) => (a.match < b.match ? -1 : 1));
  }

  async #chooseByCallout(callout: CompiledCallout, body: JsonObject, exchange: RoutedExchange): Promise<ChosenModel> {
    const choice = await callout.resolve(body, exchange);
    const isKnown = typeof choice !== "string" && this.#concrete.some(({ match }) => matchesName(match, choice.name));
    if (isKnown) {
      for (const { name, value } of choice.fields) setField(body, name, value);
      return this.#chooseConcrete(choice.name, this.#concrete, exchange);
    }
    if (callout.fallback !== undefined) return this.#chooseTarget(callout.fallback, exchange);
    if (typeof choice !== "string")
      throw refuse("virtual_model_target_not_found", `model "${choice.name}" is not offered here`);
    throw new ProxyError("model_selection_failed", { detail: choice });
  }

  #chooseTarget(target: Target, exchange: RoutedExchange): ChosenModel {
    const model = this.#concreteOf(target);
    if (model.authorization?.(exchange) !== undefined) throw denied(target.name, model, exchange);
    exchange.tried?.push(model.endpoint);
    return { endpoint: model.endpoint, name: target.name };
  }

  #draw<T extends { readonly weight: number }>(targets: readonly T[]): T | undefined {
    let left = this.#deps.random() * targets.reduce((sum, { weight }) => sum + weight, 0);
    return targets.find(({ weight }) => (left -= weight) < 0) ?? targets.at(-1);
  }

  #chooseByHealth(virtual: VirtualModel, exchange: RoutedExchange): ChosenModel {
    const all = this.#failovers.get(virtual) ?? [];
    const hasRules = all.some((group) => group.some(({ concrete }) => concrete.authorization !== undefined));
    const groups = hasRules
      ? new ProviderGroups(
          all.map((group) => group.filter(({ concrete }) => concrete.authorization?.(exchange) === undefined)),
        )
      : this.#groups.get(virtual);
    const { tried } = exchange;
    const chosen = groups?.select(this.#deps, { affinity: undefined, tried });
    if (chosen !== undefined) {
      tried?.push(chosen);
      return { endpoint: chosen, name: chosen.name };
    }
    const [first] = all.flat();
    if (first !== undefined) throw denied(virtual.match, first.concrete, exchange);
    throw refuse("virtual_model_target_not_found", `no target of model "${virtual.match}" is offered here`);
  }

  #failoverGroups(groups: Extract<Choice, { kind: "failover" }>["groups"]): FailoverEndpoint[][] {
    return groups.map((group) =>
      group.flatMap((target) => {
        const concrete = this.#byKey.get(target.model);
        if (concrete === undefined) return [];
        return [{ ...concrete.endpoint, concrete, name: target.name }];
      }),
    );
  }

  #concreteOf({ model, name }: Target): ConcreteModel {
    const found = this.#byKey.get(model);
    if (found !== undefined) return found;
    if (this.#virtualKeys.has(model))
      throw refuse("virtual_model_not_resolved", `model "${name}" is virtual and cannot be chosen by another one`);
    throw refuse("virtual_model_target_not_found", `model "${name}" is not offered here`);
  }
}

function isPublic({ isInternal }: ConcreteModel): boolean {
  return !isInternal;
}

function firstTrue(
  targets: Extract<Choice, { kind: "conditional" }>["targets"],
  exchange: RoutedExchange,
): Target | undefined {
  return targets.find(({ condition }) => condition === undefined || holds(condition, exchange));
}

function refuse(code: ProxyErrorCode, text: string): ProxyError {
  return new ProxyError(code, { text });
}

function denied(name: string, { authorization }: ConcreteModel, exchange: RoutedExchange): ProxyError {
  return new ProxyError("model_authorization_denied", {
    text: `model "${name}" is not allowed`,
    detail: authorization?.(exchange) ?? "",
  });
}

/** @param pattern a name, or one with "*" at its start or end */
function matchesName(pattern: string, name: string): boolean {
  if (pattern.startsWith("*")) return name.endsWith(pattern.slice(1));
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function bySpecificity(a: ConcreteModel, b: ConcreteModel): number {
  const isPattern = ({ match }: ConcreteModel): number => Number(match.includes("*"));
  return isPattern(a) - isPattern(b) || (isPattern(a) === 1 ? b.match.length - a.match.length : 0) || byKey(a, b);
}

function byKey(a: { readonly key: string }, b: { readonly key: string }): number {
  return a.key < b.key ? -1 : Number(a.key > b.key);
}
