/**
 * Outlines a GwPolicy: the units that it sets and the targets that it sets them on, without any value. The outline
 * stays equal when a value is edited, so that such an edit does not recompute which policies are overridden.
 * `declare.ts` uses it.
 */
import type { GwPolicy } from "../../../../generated/types/policy.ts";
import {
  BackendSettingsSchema,
  FrontendSettingsSchema,
  McpPolicySchema,
  Phase,
  type PolicyTarget,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { createdAtMs, nameKey } from "../../../api/refs.ts";
import { policyKey } from "../../../ir/keys.ts";
import { compare } from "../../../lib/compare.ts";
import type { PolicyContent } from "../content.ts";
import type { TargetResolution } from "../target.ts";

export interface PolicyOutline {
  /** Key of the resource, by which the data plane orders policies of one age. */
  readonly key: string;
  /** "namespace/name" */
  readonly name: string;
  readonly createdAtMs: number;
  readonly override: boolean;
  /** Such as "PostRouting cors", "backend tls", "frontend http". */
  readonly units: readonly string[];
  /** Such as "gateway default/gw", "route httproute/default/web#rule". */
  readonly targets: readonly string[];
}

/** @returns undefined for a policy without content, or one that targets nothing yet */
export function outlinePolicy(
  policy: GwPolicy,
  content: PolicyContent | undefined,
  resolution: TargetResolution | undefined,
): PolicyOutline | undefined {
  if (content === undefined || resolution === undefined || resolution.targets.length === 0) return undefined;
  const name = nameKey({ namespace: policy.metadata.namespace ?? "", name: policy.metadata.name });
  return {
    key: policyKey(policy.metadata.namespace ?? "", policy.metadata.name),
    name,
    createdAtMs: createdAtMs(policy),
    override: content.override,
    units: unitsOf(content),
    targets: resolution.targets.map(targetText),
  };
}

function unitsOf({ phase, units, backend, frontend }: PolicyContent): string[] {
  const early = phase === Phase.PRE_ROUTING ? "PreRouting" : "PostRouting";
  const traffic = units.flatMap(({ unit }) => {
    if (unit.case !== "headerModifiers") return [unit.case ?? ""];
    const { request, response } = unit.value;
    return [
      ...(request === undefined ? [] : ["requestHeaders"]),
      ...(response === undefined ? [] : ["responseHeaders"]),
    ];
  });
  return [
    ...traffic.map((unit) => `${early} ${unit}`),
    ...BackendSettingsSchema.fields.flatMap(({ localName }) =>
      isSet(backend, localName) && localName !== "mcp" ? `backend ${localName}` : [],
    ),
    ...McpPolicySchema.fields.flatMap(({ localName }) =>
      isSet(backend?.mcp, localName) ? `backend mcp.${localName}` : [],
    ),
    ...FrontendSettingsSchema.fields.flatMap(({ localName }) =>
      isSet(frontend, localName) ? `frontend ${localName}` : [],
    ),
  ];
}

function isSet(message: object | undefined, field: string): boolean {
  if (message === undefined || !Object.hasOwn(message, field)) return false;
  const value: unknown = Reflect.get(message, field);
  return Array.isArray(value) ? value.length > 0 : value !== undefined;
}

function targetText({ target, section, port }: PolicyTarget): string {
  if (port !== 0) return `bind ${port}/${target.value}`;
  return `${target.case} ${target.value}${section === "" ? "" : `#${section}`}`;
}

/** Sorts policies as the data plane does within one target. */
export function sortOldestFirst(entries: readonly { readonly value: PolicyOutline }[]): PolicyOutline[] {
  return entries
    .map(({ value }) => value)
    .sort((a, b) => compare(a.createdAtMs, b.createdAtMs) || compare(a.key, b.key));
}

const COLLECTED_UNITS: ReadonlySet<string> = new Set([
  "PreRouting authorization",
  "PostRouting authorization",
  "PreRouting failClosed",
  "PostRouting failClosed",
  "frontend networkAuthorization",
  "backend mcp.authorization",
]);

/**
 * Whether the unit is in force for every policy that sets it, so that it is lost only to an override. Rules of
 * authorization are collected from all policies, and `failClosed` stands for a policy that cannot be read.
 */
export function isCollected(unit: string): boolean {
  return COLLECTED_UNITS.has(unit);
}
