/**
 * Merges the GwParameters of a GatewayClass and of a Gateway: what the Gateway sets wins, field by field. Overlays are
 * kept side by side, those of the class first, because each is applied to what the one before it has made.
 * `resolve.ts` uses it.
 */
import type {
  EnvVar,
  GwParametersSpec,
  Mesh,
  Overlay,
  ResourceRequirements,
} from "../../../generated/types/parameters.ts";
import type { OverlayName } from "./overlays.ts";

/** The model catalog is read on its own (`../gateways/model-catalog.ts`). */
type TypedField = Exclude<keyof GwParametersSpec, OverlayName | "modelCatalog">;

/** A field that is added to the schema does not compile without a row in `mergeLevel`. */
type TypedParameters = { readonly [F in TypedField]: GwParametersSpec[F] | undefined };

export interface DeploymentParameters extends TypedParameters {
  readonly overlays: Readonly<Record<OverlayName, readonly Overlay[]>>;
}

/** Parameters of a Gateway that names none. */
export const NO_PARAMETERS: DeploymentParameters = mergeParameters([]);

/** @param levels the specs of the class and of the Gateway, as far as there are any */
export function mergeParameters(levels: readonly GwParametersSpec[]): DeploymentParameters {
  const overlaysOf = (name: OverlayName): readonly Overlay[] => levels.flatMap((level) => level[name] ?? []);
  return {
    ...levels.reduce<TypedParameters>(mergeLevel, mergeLevel({}, {})),
    overlays: {
      deployment: overlaysOf("deployment"),
      daemonSet: overlaysOf("daemonSet"),
      service: overlaysOf("service"),
      serviceAccount: overlaysOf("serviceAccount"),
      podDisruptionBudget: overlaysOf("podDisruptionBudget"),
      horizontalPodAutoscaler: overlaysOf("horizontalPodAutoscaler"),
    },
  };
}

function mergeLevel(base: Partial<TypedParameters>, over: GwParametersSpec): TypedParameters {
  return {
    workload: mergeBoth(base.workload, over.workload, mergeMembers),
    logging: mergeBoth(base.logging, over.logging, mergeMembers),
    image: mergeBoth(base.image, over.image, mergeMembers),
    mesh: mergeBoth(base.mesh, over.mesh, mergeMesh),
    env: mergeBoth(base.env, over.env, mergeEnv),
    resources: mergeBoth(base.resources, over.resources, mergeResources),
    shutdown: over.shutdown ?? base.shutdown,
    spiffe: over.spiffe ?? base.spiffe,
    rawConfig: over.rawConfig ?? base.rawConfig,
  };
}

function mergeBoth<Value>(
  base: Value | undefined,
  over: Value | undefined,
  merge: (base: Value, over: Value) => Value,
): Value | undefined {
  return base === undefined || over === undefined ? (over ?? base) : merge(base, over);
}

function mergeMembers<Value extends object>(base: Value, over: Value): Value {
  return { ...base, ...over };
}

function mergeMesh(base: Mesh, over: Mesh): Mesh {
  const { additionalTrustDomains = [], ...rest } = over;
  return { ...base, ...rest, ...(additionalTrustDomains.length === 0 ? {} : { additionalTrustDomains }) };
}

function mergeResources(base: ResourceRequirements, over: ResourceRequirements): ResourceRequirements {
  return {
    ...base,
    ...over,
    ...(base.limits === undefined && over.limits === undefined ? {} : { limits: { ...base.limits, ...over.limits } }),
    ...(base.requests === undefined && over.requests === undefined
      ? {}
      : { requests: { ...base.requests, ...over.requests } }),
  };
}

function mergeEnv(base: readonly EnvVar[], over: readonly EnvVar[]): readonly EnvVar[] {
  const names = new Set(over.map(({ name }) => name));
  return [...base.filter(({ name }) => !names.has(name)), ...over];
}
