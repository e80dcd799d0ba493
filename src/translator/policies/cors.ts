/**
 * Translates `traffic.cors`, and the CORS filter of a route (GEP-1767), which has the same fields. An absent field
 * allows nothing.
 */
import { create } from "@bufbuild/protobuf";
import type { HTTPRouteCors } from "../../../generated/types/gateway-api/httproute.ts";
import { CorsSchema, type Cors } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { UnitTranslator } from "./shared/unit.ts";

const DEFAULT_MAX_AGE_SECONDS = 5;

export const cors: UnitTranslator = {
  translate({ cors: block }) {
    if (block === undefined) return undefined;
    return { case: "cors", value: translateCors(block) };
  },
};

export function translateCors(block: HTTPRouteCors): Cors {
  return create(CorsSchema, {
    allowOrigins: [...(block.allowOrigins ?? [])],
    allowCredentials: block.allowCredentials ?? false,
    allowMethods: [...(block.allowMethods ?? [])],
    allowHeaders: [...(block.allowHeaders ?? [])],
    exposeHeaders: [...(block.exposeHeaders ?? [])],
    maxAgeSeconds: block.maxAge ?? DEFAULT_MAX_AGE_SECONDS,
  });
}
