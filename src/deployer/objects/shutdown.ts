/** Decides how long the pods of a data plane may take to stop. The pod and its variables have to say the same. */
import type { DeploymentParameters } from "../../translator/parameters/merge.ts";
import { rawSettings } from "./config.ts";

/** Limits of the graceful shutdown, in seconds. */
const STANDARD = { min: 10, max: 60 } as const;

export function shutdownOf(parameters: DeploymentParameters): { readonly min: number; readonly max: number } {
  if (parameters.shutdown !== undefined) return parameters.shutdown;
  const { drainMin = STANDARD.min, gracePeriod = Math.max(STANDARD.max, drainMin) } = rawSettings(parameters);
  return { min: Math.min(Math.ceil(drainMin), Math.ceil(gracePeriod)), max: Math.ceil(gracePeriod) };
}
