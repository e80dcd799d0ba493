/** Translates `traffic.hostRewrite`: the Host header that the chosen destination receives. */
import { create } from "@bufbuild/protobuf";
import { HostRewriteSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { UnitTranslator } from "./shared/unit.ts";

export const hostRewrite: UnitTranslator = {
  translate({ hostRewrite: block }) {
    if (block === undefined) return undefined;
    return { case: "hostRewrite", value: create(HostRewriteSchema, { auto: block.mode === "Auto" }) };
  },
};
