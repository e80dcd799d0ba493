/** Translates `traffic.authorization`. The data plane collects the rules of all levels. */
import type { UnitTranslator } from "./shared/unit.ts";
import { translateAuthorization } from "./shared/authorization.ts";

export const authorization: UnitTranslator = {
  translate({ authorization: block }, context) {
    if (block === undefined) return undefined;
    return { case: "authorization", value: translateAuthorization(block, "authorization", context, "request") };
  },
};
