/**
 * Translates `traffic.headerModifiers`: edits with literal values. When policies merge, `request` and `response` are
 * decided separately.
 */
import { create } from "@bufbuild/protobuf";
import { HeaderModifiersSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { translateHeaderChange } from "../routes/filters.ts";
import type { UnitTranslator } from "./shared/unit.ts";

export const headerModifiers: UnitTranslator = {
  translate({ headerModifiers: block }) {
    if (block === undefined) return undefined;
    const { request, response } = block;
    const value = create(HeaderModifiersSchema, {
      ...(request === undefined ? {} : { request: translateHeaderChange(request) }),
      ...(response === undefined ? {} : { response: translateHeaderChange(response) }),
    });
    return { case: "headerModifiers", value };
  },
};
