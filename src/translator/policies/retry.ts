/**
 * Translates `traffic.retry`: which failed requests are retried, how often and when. Routes use the same limit of
 * attempts.
 */
import { create } from "@bufbuild/protobuf";
import { RetrySchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseDuration } from "../../lib/time/duration.ts";
import { checkExpression, type UnitTranslator } from "./shared/unit.ts";

/** Maximum number of attempts; a larger value in a policy has the effect of this one. */
export const MAX_ATTEMPTS = 255;

export const retry: UnitTranslator = {
  translate({ retry: block }, context) {
    if (block === undefined) return undefined;
    const { attempts = 1, codes = [], backoff, precondition, condition } = block;
    const backoffMs = backoff === undefined ? 0 : parseDuration(backoff);
    if (backoffMs === undefined) context.report("retry.backoff", `"${backoff}" is not a duration`);
    const value = create(RetrySchema, {
      attempts: Math.min(attempts, MAX_ATTEMPTS),
      codes: [...codes],
      backoffMs: backoffMs ?? 0,
      precondition: checkExpression(precondition, "retry.precondition", context),
      condition: checkExpression(condition, "retry.condition", context),
    });
    return { case: "retry", value };
  },
};
