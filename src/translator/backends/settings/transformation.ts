/**
 * Translates `transformation` of a backend block: changes to each request towards the backend and to its responses.
 * `settings.ts` uses it.
 */
import type { TransformationPolicy } from "../../../../generated/types/traffic.ts";
import type { Transformation } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { phaseOfBackend } from "../../policies/shared/expression-phase.ts";
import type { Report } from "../../shared/report.ts";
import { translateTransformation } from "../../policies/shared/transformation.ts";

export function translateBackendTransformation(block: TransformationPolicy, report: Report): Transformation {
  // An expression that does not compile removes its header or empties the body, so that the client's value never passes
  // in its place.
  const context = { report: (path: string, message: string) => report(path, message, "warning") };
  return translateTransformation(block, "", context, (path) => phaseOfBackend(`transformation.${path}`));
}
