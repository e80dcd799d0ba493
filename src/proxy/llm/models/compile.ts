/**
 * Compiles the Models that one Backend offers. The router (router.ts) chooses among them for each request.
 *
 * A concrete model has a provider of its own; a virtual one chooses among others by weight, by conditions, or by their
 * health in order of priority.
 */
import { create } from "@bufbuild/protobuf";
import {
  ProviderSchema,
  type ConditionalModels,
  type FailoverModels,
  type Model,
  type WeightedModels,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../cel/expression.ts";
import { ConfigError } from "../../../lib/errors.ts";
import type { BackendDeps } from "../../backends/handler.ts";
import { compileRules, type Decide } from "../../policies/shared/authorization-rules.ts";
import { compileEndpoint, type Endpoint } from "../call/endpoint.ts";
import { compileCallout, type CompiledCallout } from "./callout.ts";

/** What the list of models shows. */
interface ModelFacts {
  /** Key of the resource. */
  readonly key: string;
  /** The name that clients use, or a pattern. */
  readonly match: string;
  readonly createdAtMs: number;
}

export interface ConcreteModel extends ModelFacts {
  /** Only virtual models may choose it. */
  readonly isInternal: boolean;
  /** undefined when everyone may use the model. */
  readonly authorization: Decide | undefined;
  readonly endpoint: Endpoint;
}

/** A model that a virtual one may choose, and the name that it is asked for. */
export interface Target {
  readonly model: string;
  readonly name: string;
}

export type Choice =
  | { readonly kind: "weighted"; readonly targets: readonly (Target & { readonly weight: number })[] }
  | { readonly kind: "failover"; readonly groups: readonly (readonly Target[])[] }
  | {
      readonly kind: "conditional";
      /** A target without a condition is always chosen. */
      readonly targets: readonly (Target & { readonly condition: Expression | undefined })[];
    }
  | { readonly kind: "callout"; readonly callout: CompiledCallout };

export interface VirtualModel extends ModelFacts {
  readonly choice: Choice;
}

export interface CompiledModels {
  readonly concrete: readonly ConcreteModel[];
  readonly virtual: readonly VirtualModel[];
}

/** @throws ConfigError for a model that this version does not know */
export function compileModels(models: readonly Model[], deps: BackendDeps): CompiledModels {
  const concrete: ConcreteModel[] = [];
  const virtual: VirtualModel[] = [];
  for (const model of models) {
    const { key, match, kind } = model;
    const facts = { key, match, createdAtMs: Number(model.createdAtMs) };
    if (kind.case === "provider") {
      const node = create(ProviderSchema, { ...kind.value, name: nameOfModel(key) });
      const { authorization, internal } = model;
      concrete.push({
        ...facts,
        isInternal: internal,
        authorization:
          authorization === undefined
            ? undefined
            : compileRules(authorization.rules, (source) => deps.expression(source, "llm")),
        endpoint: compileEndpoint(node, deps),
      });
    } else virtual.push({ ...facts, choice: compileChoice(model, deps) });
  }
  return { concrete, virtual };
}

function compileChoice({ key, kind }: Model, deps: BackendDeps): Choice {
  switch (kind.case) {
    case "weighted":
      return compileWeighted(kind.value);
    case "failover":
      return compileFailover(kind.value);
    case "conditional":
      return compileConditional(kind.value, deps);
    case "callout":
      return { kind: "callout", callout: compileCallout(kind.value, deps) };
    default:
      throw new ConfigError(`${key} is of a kind unknown to this version`);
  }
}

function compileWeighted({ targets }: WeightedModels): Choice {
  return { kind: "weighted", targets: targets.map(({ target, weight }) => ({ ...targetOf(target), weight })) };
}

function compileFailover({ targets }: FailoverModels): Choice {
  const byPriority = Map.groupBy(targets, ({ priority }) => priority);
  const groups = [...byPriority]
    .sort(([a], [b]) => a - b)
    .map(([, group]) => group.map(({ target }) => targetOf(target)));
  return { kind: "failover", groups };
}

function compileConditional({ targets }: ConditionalModels, deps: BackendDeps): Choice {
  return {
    kind: "conditional",
    targets: targets.map(({ target, condition }) => ({
      ...targetOf(target),
      condition: condition === "" ? undefined : deps.expression(condition, "llm"),
    })),
  };
}

function targetOf(target: { readonly model: string; readonly name: string } | undefined): Target {
  return { model: target?.model ?? "", name: target?.name ?? "" };
}

/** Returns "namespace/name" of a model. */
export function nameOfModel(key: string): string {
  return key.slice("model/".length);
}
