/** Translates `traffic.timeouts`: the timeout of a request, from its arrival to the last byte of the response. */
import { create } from "@bufbuild/protobuf";
import { TimeoutsSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseDuration } from "../../lib/time/duration.ts";
import type { UnitTranslator } from "./shared/unit.ts";

export const timeouts: UnitTranslator = {
  translate({ timeouts: block }, context) {
    if (block?.request === undefined) return undefined;
    const requestMs = parseDuration(block.request) ?? 0;
    if (requestMs > 0) return { case: "timeouts", value: create(TimeoutsSchema, { requestMs }) };
    context.report("timeouts.request", `"${block.request}" is not a positive duration`);
    return undefined;
  },
};
