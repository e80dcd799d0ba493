/** Translates a virtual GwModel: how one of other models of its namespace is chosen. `translate.ts` uses it. */
import { create } from "@bufbuild/protobuf";
import type {
  CalloutCache,
  GwModel,
  ModelCallout as ApiCallout,
  ModelTarget as ApiTarget,
  VirtualModel,
} from "../../../generated/types/model.ts";
import {
  ConditionalModelsSchema,
  FailoverModelsSchema,
  ModelCalloutCacheSchema,
  ModelCalloutSchema,
  ModelTargetSchema,
  WeightedModelsSchema,
  type Model,
  type ModelCallout,
  type ModelCalloutCache,
  type ModelTarget,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { nameKey } from "../../api/refs.ts";
import { modelKey } from "../../ir/keys.ts";
import type { Readable } from "../../lib/collections/collection.ts";
import { parseDuration } from "../../lib/time/duration.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ServiceReader } from "../policies/shared/external-service.ts";
import { checkExpression, expressionMap } from "../policies/shared/unit.ts";
import { within, type Report } from "../shared/report.ts";

/** What other models need to know of a model. */
export interface ModelName {
  readonly match: string;
  readonly isVirtual: boolean;
}

export interface VirtualContext {
  readonly namespace: string;
  /** Every GwModel that exists, by its name. */
  readonly models: Readable<ModelName>;
  readonly services: ServiceReader;
  readonly read: Read;
  readonly error: Report;
}

export function nameOfModel({ metadata, spec }: GwModel): ModelName {
  return { match: spec.match?.model ?? metadata.name, isVirtual: spec.virtualModel !== undefined };
}

export function translateVirtualModel(spec: VirtualModel, context: VirtualContext): Model["kind"] {
  const { weighted, failover, conditional, callout } = spec;
  const targetAt = (kind: string, target: ApiTarget, at: number) =>
    translateTarget(target, `${kind}.targets[${at}]`, context);
  if (weighted !== undefined) {
    const targets = weighted.targets.map((target, at) => ({
      target: targetAt("weighted", target, at),
      weight: target.weight ?? 1,
    }));
    return { case: "weighted", value: create(WeightedModelsSchema, { targets }) };
  }
  if (failover !== undefined) {
    const targets = failover.targets.map((target, at) => {
      requireConcrete(target, `failover.targets[${at}]`, context);
      return { target: targetAt("failover", target, at), priority: target.priority };
    });
    return { case: "failover", value: create(FailoverModelsSchema, { targets }) };
  }
  if (conditional !== undefined) {
    const targets = conditional.targets.map((target, at) => ({
      target: targetAt("conditional", target, at),
      condition: check(target.when, `conditional.targets[${at}].when`, context),
    }));
    return { case: "conditional", value: create(ConditionalModelsSchema, { targets }) };
  }
  if (callout !== undefined) return { case: "callout", value: translateCallout(callout, context) };
  context.error("", "one of weighted, failover, conditional, callout is required");
  return { case: undefined };
}

function check(text: string | undefined, path: string, { error }: VirtualContext): string {
  return checkExpression(text, path, { report: error }, "llm");
}

function translateTarget({ modelRef, model }: ApiTarget, path: string, context: VirtualContext): ModelTarget {
  const { namespace, models, read, error } = context;
  const key = nameKey({ namespace, name: modelRef.name });
  const found = read.get(models, key);
  if (found === undefined) error(`${path}.modelRef`, `GwModel ${key} not found`);
  else if (model === undefined && found.match.includes("*"))
    error(`${path}.model`, `GwModel ${key} matches "${found.match}"; name the model to ask it for`);
  return create(ModelTargetSchema, {
    model: modelKey(namespace, modelRef.name),
    name: model ?? found?.match ?? "",
  });
}

function requireConcrete(
  { modelRef }: ApiTarget,
  path: string,
  { namespace, models, read, error }: VirtualContext,
): void {
  const key = nameKey({ namespace, name: modelRef.name });
  if (read.get(models, key)?.isVirtual === true)
    error(`${path}.modelRef`, `GwModel ${key} is virtual; a failover chooses among models of providers`);
}

function translateCallout(callout: ApiCallout, context: VirtualContext): ModelCallout {
  const { headers, body, transformation, fallback, cache, backendRef, url } = callout;
  const error = within(context.error, "callout");
  const here = { ...context, error };
  const expressions = expressionMap(headers, "headers", { report: error }, () => "llm");
  const fields = expressionMap(transformation, "transformation", { report: error }, () => "callout");
  if (transformation["model"] === undefined) error("transformation", "the field model is required; it names the model");
  const endpoint = { ...(backendRef === undefined ? {} : { backendRef }), ...(url === undefined ? {} : { url }) };
  return create(ModelCalloutSchema, {
    service: context.services.resolve(endpoint, "", error),
    headers: Object.entries(expressions).map(([name, expression]) => ({ name, expression })),
    body: check(body, "body", here),
    transformation: Object.entries(fields).map(([field, expression]) => ({ field, expression })),
    ...(fallback === undefined ? {} : { fallback: translateTarget(fallback, "fallback", here) }),
    ...(cache === undefined ? {} : { cache: translateCache(cache, here) }),
  });
}

const DEFAULT_ENTRIES = 10_000;

function translateCache({ key, ttl, maxEntries }: CalloutCache, context: VirtualContext): ModelCalloutCache {
  const ttlMs = parseDuration(ttl);
  return create(ModelCalloutCacheSchema, {
    key: key.map((text, at) => check(text, `cache.key[${at}]`, context)),
    ttl:
      ttlMs === undefined
        ? { case: "ttlExpression", value: check(ttl, "cache.ttl", context) }
        : { case: "ttlMs", value: BigInt(ttlMs) },
    maxEntries: maxEntries ?? DEFAULT_ENTRIES,
  });
}
