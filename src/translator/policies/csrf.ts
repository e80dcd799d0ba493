/** Translates `traffic.csrf`: the additional origins that may send requests. */
import { create } from "@bufbuild/protobuf";
import { CsrfSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { UnitTranslator } from "./shared/unit.ts";

export const csrf: UnitTranslator = {
  translate({ csrf: block }) {
    if (block === undefined) return undefined;
    return { case: "csrf", value: create(CsrfSchema, { additionalOrigins: [...(block.additionalOrigins ?? [])] }) };
  },
};
