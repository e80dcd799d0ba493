/** Builds the resource of a GwPolicy from its content and its targets. `../graph.ts` uses it. */
import { create } from "@bufbuild/protobuf";
import { PolicySchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ObjectId } from "../../api/object.ts";
import { resourceOf } from "../../ir/encode.ts";
import { policyKey } from "../../ir/keys.ts";
import type { ScopedResource } from "../shared/resource-store.ts";
import { irRef } from "../references/refs.ts";
import { scopeTo } from "../shared/scoped-resources.ts";
import type { PolicyContent } from "./content.ts";
import type { TargetResolution } from "./target.ts";

/** @returns an empty list for a policy without content, or one that reaches no Gateway yet */
export function policyResource(
  id: ObjectId,
  createdMs: number,
  content: PolicyContent | undefined,
  resolution: TargetResolution | undefined,
): ScopedResource[] {
  if (content === undefined || resolution === undefined || !hasSettings(content)) return [];
  const message = create(PolicySchema, {
    key: policyKey(id.namespace, id.name),
    object: irRef(id),
    createdAtMs: BigInt(createdMs),
    targets: [...resolution.targets],
    phase: content.phase,
    override: content.override,
    units: [...content.units],
    ...(content.backend === undefined ? {} : { backend: content.backend }),
    ...(content.frontend === undefined ? {} : { frontend: content.frontend }),
  });
  return scopeTo(resolution.gateways, [resourceOf("Policy", message)]);
}

function hasSettings({ units, backend, frontend }: PolicyContent): boolean {
  return units.length > 0 || (backend ?? frontend) !== undefined;
}

/** Reports whether the policy enforces anything that the user asked for; `failClosed` units do not count. */
export function enforces({ units, backend, frontend }: PolicyContent): boolean {
  return units.some(({ unit }) => unit.case !== "failClosed") || (backend ?? frontend) !== undefined;
}
