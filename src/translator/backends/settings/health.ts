/**
 * Translates `health` of a backend block: the condition that makes a response unhealthy, and the outlier ejection that
 * follows. `settings.ts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import type {
  BackendHealth as ApiHealth,
  Eviction as ApiEviction,
} from "../../../../generated/types/backend-policies.ts";
import {
  BackendHealthSchema,
  EvictionSchema,
  type BackendHealth,
  type Eviction,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { timerMs } from "../../../lib/time/duration.ts";
import { phaseOfBackend } from "../../policies/shared/expression-phase.ts";
import { checkExpression } from "../../policies/shared/unit.ts";
import type { Report } from "../../shared/report.ts";

export function translateHealth({ unhealthyCondition, eviction }: ApiHealth, report: Report): BackendHealth {
  const place = phaseOfBackend("health.unhealthyCondition");
  // An expression that does not compile counts as healthy, so that the backend keeps serving.
  const context = { report: (path: string, message: string) => report(path, message, "warning") };
  return create(BackendHealthSchema, {
    unhealthyCondition: checkExpression(unhealthyCondition, "unhealthyCondition", context, place),
    ...(eviction === undefined ? {} : { eviction: translateEviction(eviction) }),
  });
}

function translateEviction({ duration, ...limits }: ApiEviction): Eviction {
  const { restoreHealth, consecutiveFailures, healthThreshold } = limits;
  return create(EvictionSchema, {
    ...(duration === undefined ? {} : { durationMs: timerMs(duration) }),
    ...(restoreHealth === undefined ? {} : { restoreHealth }),
    ...(consecutiveFailures === undefined ? {} : { consecutiveFailures }),
    ...(healthThreshold === undefined ? {} : { healthThreshold }),
  });
}
