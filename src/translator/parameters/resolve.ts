/**
 * Finds the GwParameters of a Gateway, its own and those of its class, and merges them. `../gateways/deployment-plan.ts`
 * uses it. Whatever is wrong with them stops the deployment of this Gateway, and what runs keeps running.
 */
import type { Gateway } from "../../../generated/types/gateway-api/gateway.ts";
import type { GatewayClassParametersRef } from "../../../generated/types/gateway-api/gatewayclass.ts";
import type { GwParameters } from "../../../generated/types/parameters.ts";
import { Reason } from "../../api/conditions.ts";
import { GWPROXY_GROUP, nameKey } from "../../api/refs.ts";
import type { ConditionError } from "../shared/views.ts";
import { findMismatches, findParametersErrors } from "./check.ts";
import { mergeParameters, NO_PARAMETERS, type DeploymentParameters } from "./merge.ts";

export interface ResolvedParameters {
  readonly parameters: DeploymentParameters;
  readonly error: ConditionError | undefined;
}

export type FindParameters = (key: string) => GwParameters | undefined;

export function resolveParameters(
  { spec, metadata }: Gateway,
  classRef: GatewayClassParametersRef | undefined,
  find: FindParameters,
): ResolvedParameters {
  const { namespace = "" } = metadata;
  const own = spec.infrastructure?.parametersRef;
  const found = [
    classRef === undefined
      ? undefined
      : findRef(classRef, `GatewayClass ${spec.gatewayClassName} spec.parametersRef`, find),
    own === undefined ? undefined : findRef({ ...own, namespace }, "spec.infrastructure.parametersRef", find),
  ].filter((one) => one !== undefined);
  const levels = found.filter((one) => typeof one === "object");
  const problem = found.find((one) => typeof one === "string") ?? findProblem(levels);
  if (problem === undefined)
    return { parameters: mergeParameters(levels.map((level) => level.spec)), error: undefined };
  return { parameters: NO_PARAMETERS, error: { reason: Reason.InvalidParameters, message: problem } };
}

/** @returns the parameters, or a sentence that says why there are none */
function findRef(ref: GatewayClassParametersRef, path: string, find: FindParameters): GwParameters | string {
  const { group, kind, namespace = "", name } = ref;
  if (group !== GWPROXY_GROUP || kind !== "GwParameters")
    return `${path}: ${kind} of the group "${group}" is not known; name a GwParameters of ${GWPROXY_GROUP}`;
  if (namespace === "") return `${path}: a namespace is needed, because GwParameters are namespaced`;
  const key = nameKey({ namespace, name });
  return find(key) ?? `${path}: there is no GwParameters ${key} in the namespaces that the controller reads`;
}

function findProblem(levels: readonly GwParameters[]): string | undefined {
  const merged = mergeParameters(levels.map(({ spec }) => spec));
  const [first, ...more] = levels.flatMap((level) =>
    [...findParametersErrors(level.spec), ...findMismatches(level.spec, merged)].map(
      ({ path, message }) => `GwParameters ${nameKey(level.metadata)} ${path}: ${message}`,
    ),
  );
  return first === undefined || more.length === 0 ? first : `${first}; and ${more.length} more`;
}
