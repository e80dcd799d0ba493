/** Translates `traffic.delay`: a fixed duration, or an expression that yields one. */
import { create } from "@bufbuild/protobuf";
import { DelaySchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseDuration } from "../../lib/time/duration.ts";
import { checkExpression, type UnitTranslator } from "./shared/unit.ts";

export const delay: UnitTranslator = {
  translate({ delay: block }, context) {
    if (block === undefined) return undefined;
    const ms = parseDuration(block.duration);
    const duration =
      ms === undefined
        ? ({ case: "expression", value: checkExpression(block.duration, "delay.duration", context) } as const)
        : ({ case: "ms", value: ms } as const);
    return { case: "delay", value: create(DelaySchema, { duration }) };
  },
};
