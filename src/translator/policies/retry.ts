/** `traffic.retry`: which failed requests are tried again, how often and when. */
import { create } from "@bufbuild/protobuf";
import { RetrySchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseDuration } from "../../lib/duration.ts";
import { checkExpression, type UnitTranslator } from "./shared/unit.ts";

/** A user may write more, which act as this many. */
export const MOST_ATTEMPTS = 255;

export const retry: UnitTranslator = {
  translate({ retry: block }, context) {
    if (block === undefined) return undefined;
    const { attempts = 1, codes = [], backoff, precondition, condition } = block;
    const backoffMs = backoff === undefined ? 0 : parseDuration(backoff);
    if (backoffMs === undefined) context.report("retry.backoff", `"${backoff}" is not a duration`);
    const value = create(RetrySchema, {
      attempts: Math.min(attempts, MOST_ATTEMPTS),
      codes: [...codes],
      backoffMs: backoffMs ?? 0,
      precondition: checkExpression(precondition, "retry.precondition", context),
      condition: checkExpression(condition, "retry.condition", context),
    });
    return { case: "retry", value };
  },
};
