/**
 * Handles a GwPolicy that admission rejected, as far as it can be read: its targets. `../graph.ts` and `content.ts` use
 * it. The content of the policy is unknown, so its targets answer 500 until it is corrected (fail closed): a typing
 * error must never open a route.
 */
import { create } from "@bufbuild/protobuf";
import type { TargetRef, TargetSelector } from "../../../generated/types/policy.ts";
import { Phase, FailClosedSchema, TrafficUnitSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { PolicyContent } from "./content.ts";
import { groupOfTarget, type TargetSpec } from "./target.ts";
import type { Unit } from "./shared/unit.ts";

export function failClosedContent(): PolicyContent {
  return {
    phase: Phase.POST_ROUTING,
    override: true,
    units: [create(TrafficUnitSchema, { unit: failClosedUnit("policy refused") })],
    backend: undefined,
    frontend: undefined,
    uses: [],
    backendUses: [],
    remoteJwks: [],
    diagnostics: [],
  };
}

/** Returns a unit that refuses all requests to the targets of the policy, routes and backends alike. */
export function failClosedUnit(reason: string): Unit {
  return { case: "failClosed", value: create(FailClosedSchema, { reason }) };
}

/** Returns the targets that can be read. A section that cannot be read widens its target to the whole object. */
export function readableTargets(object: unknown): TargetSpec {
  const spec = member(object, "spec");
  return {
    targetRefs: list(member(spec, "targetRefs")).flatMap((entry): TargetRef[] => {
      const name = text(entry, "name");
      const fields = targetFields(entry);
      return name === undefined || fields === undefined ? [] : [{ name, ...fields }];
    }),
    targetSelectors: list(member(spec, "targetSelectors")).flatMap((entry): TargetSelector[] => {
      const labels = member(entry, "matchLabels");
      const fields = targetFields(entry);
      if (fields === undefined || typeof labels !== "object" || labels === null) return [];
      const readable = Object.entries(labels).filter(
        (label): label is [string, string] => typeof label[1] === "string",
      );
      return [{ matchLabels: Object.fromEntries(readable), ...fields }];
    }),
  };
}

function targetFields(entry: unknown): Pick<TargetRef, "group" | "kind" | "sectionName"> | undefined {
  const kind = text(entry, "kind");
  if (kind === undefined) return undefined;
  const sectionName = text(entry, "sectionName");
  // The kind alone decides the target: a mistake in the group must not leave the target open.
  const group = groupOfTarget(kind) ?? "";
  return { group, kind, ...(sectionName === undefined ? {} : { sectionName }) };
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name]; // the object has the member
}

function text(value: unknown, name: string): string | undefined {
  const found = member(value, name);
  return typeof found === "string" && found !== "" ? found : undefined;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
