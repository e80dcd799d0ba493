/** `traffic.cors`. Without a field nothing of that kind is allowed. */
import { create } from "@bufbuild/protobuf";
import { CorsSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { UnitTranslator } from "./unit.ts";

const DEFAULT_MAX_AGE_SECONDS = 5;

export const cors: UnitTranslator = {
  name: "cors",
  translate({ cors: block }) {
    if (block === undefined) return undefined;
    const value = create(CorsSchema, {
      allowOrigins: [...(block.allowOrigins ?? [])],
      allowCredentials: block.allowCredentials ?? false,
      allowMethods: [...(block.allowMethods ?? [])],
      allowHeaders: [...(block.allowHeaders ?? [])],
      exposeHeaders: [...(block.exposeHeaders ?? [])],
      maxAgeSeconds: block.maxAge ?? DEFAULT_MAX_AGE_SECONDS,
    });
    return { case: "cors", value };
  },
};
