/**
 * Translates `traffic.headerModifiers`: edits with literal values. When policies merge, `request` and `response` are
 * decided separately.
 */
import { create } from "@bufbuild/protobuf";
import {
  HeaderChangeSchema,
  HeaderModifiersSchema,
  type HeaderChange,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { UnitTranslator } from "./shared/unit.ts";
import type { HTTPHeaderFilter } from "../../../generated/types/gateway-api/httproute.ts";

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

export function translateHeaderChange(change: HTTPHeaderFilter | undefined): HeaderChange {
  const { set = [], add = [], remove = [] } = change ?? {};
  return create(HeaderChangeSchema, {
    set: set.map(({ name, value }) => ({ name, value })),
    add: add.map(({ name, value }) => ({ name, value })),
    remove: remove.map((name) => name.toLowerCase()),
  });
}
