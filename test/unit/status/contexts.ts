/** What the tests of statuses share: contexts in which data planes have refused resources, and conditions as text. */
import type { StatusContext } from "../../../src/status/condition.ts";
import type { DesiredCondition } from "../../../src/status/desired.ts";

export const REASON = "units[0]: does not compile";

/** As if data planes of one Gateway had refused the resources of these "Type key". */
export function refusing(...ids: readonly string[]): StatusContext {
  return {
    controllerName: "c",
    acknowledged: () => true,
    hasDataPlane: () => true,
    nackReason: (type, key, gateway = "default/main") =>
      gateway === "default/main" && ids.includes(`${type} ${key}`) ? REASON : undefined,
  };
}

export function summary(conditions: readonly DesiredCondition[] | undefined): string[] {
  return (conditions ?? []).map(({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`);
}
