/** Translates `traffic.transformation`: headers, body and metadata set by expressions, under conditions. */
import { create } from "@bufbuild/protobuf";
import type { TransformationPolicy } from "../../../generated/types/traffic.ts";
import {
  TransformationBranchSchema,
  TransformationChoiceSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { branchesOf, checkExpression, type UnitTranslator } from "./shared/unit.ts";
import { translateTransformation } from "./shared/transformation.ts";

export const transformation: UnitTranslator = {
  translate({ transformation: block }, context) {
    if (block === undefined) return undefined;
    const branches = branchesOf<TransformationPolicy>("transformation", block).map(
      ({ condition, conditionPath, policy, path }) => {
        return create(TransformationBranchSchema, {
          condition: checkExpression(condition, conditionPath, context),
          transformation: translateTransformation(policy, path, context),
        });
      },
    );
    return { case: "transformation", value: create(TransformationChoiceSchema, { branches }) };
  },
};
