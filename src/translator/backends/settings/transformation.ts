/** `transformation` of a backend block: changes to each request that leaves for it, and to its answers. */
import type { TransformationPolicy } from "../../../../generated/types/traffic.ts";
import type { Transformation } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { phaseOfBackend } from "../../policies/shared/expression-phase.ts";
import { translateTransformation } from "../../policies/transformation.ts";
import type { Report } from "./settings.ts";

export function translateBackendTransformation(block: TransformationPolicy, report: Report): Transformation {
  // One that does not compile removes its header or empties the body: nothing of a client's passes in its place.
  const context = { report: (path: string, message: string) => report(path, message, "warning") };
  return translateTransformation(block, "", context, (path) => phaseOfBackend(`transformation.${path}`));
}
