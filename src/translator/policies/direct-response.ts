/** Translates `traffic.directResponse`: responses that are sent without calling a backend. */
import { create } from "@bufbuild/protobuf";
import type { DirectResponsePolicy } from "../../../generated/types/traffic.ts";
import {
  DirectResponseBranchSchema,
  DirectResponseChoiceSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { branchesOf, checkExpression, type UnitTranslator } from "./shared/unit.ts";

export const directResponse: UnitTranslator = {
  translate({ directResponse: block }, context) {
    if (block === undefined) return undefined;
    const branches = branchesOf<DirectResponsePolicy>("directResponse", block).map(
      ({ condition, conditionPath, policy, path }) =>
        create(DirectResponseBranchSchema, {
          condition: checkExpression(condition, conditionPath, context),
          response: {
            status: policy.status,
            body: policy.body ?? "",
            bodyExpression: checkExpression(policy.bodyExpression, `${path}.bodyExpression`, context),
            headers: (policy.headers ?? []).map(({ name, value }, rank) => ({
              name,
              expression: checkExpression(value, `${path}.headers[${rank}].value`, context),
            })),
          },
        }),
    );
    return { case: "directResponse", value: create(DirectResponseChoiceSchema, { branches }) };
  },
};
