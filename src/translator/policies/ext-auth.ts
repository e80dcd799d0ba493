/** Translates `traffic.extAuth`: an external authorization service, called over gRPC or HTTP. */
import { create } from "@bufbuild/protobuf";
import type { ExtAuthPolicy } from "../../../generated/types/traffic-external.ts";
import { ExtAuthBranchSchema, ExtAuthChoiceSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { phaseOfTraffic } from "./shared/expression-phase.ts";
import { translateExtAuth } from "./shared/ext-auth.ts";
import { branchesOf, checkExpression, type UnitTranslator } from "./shared/unit.ts";

export const extAuth: UnitTranslator = {
  translate({ extAuth: block }, context) {
    if (block === undefined) return undefined;
    const branches = branchesOf<ExtAuthPolicy>("extAuth", block).map(({ condition, conditionPath, policy, path }) =>
      create(ExtAuthBranchSchema, {
        condition: checkExpression(condition, conditionPath, context),
        extAuth: translateExtAuth(policy, path, context, phaseOfTraffic),
      }),
    );
    return { case: "extAuth", value: create(ExtAuthChoiceSchema, { branches }) };
  },
};
