/** `traffic.transformation`: headers, body and metadata by expressions. */
import { create } from "@bufbuild/protobuf";
import type { Transform as ApiTransform, TransformationPolicy } from "../../../generated/types/traffic.ts";
import {
  TransformationBranchSchema,
  TransformationChoiceSchema,
  TransformSchema,
  type Transform,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { branchesOf, checkExpression, expressionMap, type UnitContext, type UnitTranslator } from "./unit.ts";

export const transformation: UnitTranslator = {
  name: "transformation",
  translate({ transformation: block }, context) {
    if (block === undefined) return undefined;
    const branches = branchesOf<TransformationPolicy>("transformation", block).map(
      ({ condition, conditionPath, policy, path }) => {
        const { request, response } = policy;
        return create(TransformationBranchSchema, {
          condition: checkExpression(condition, conditionPath, context),
          transformation: {
            ...(request === undefined ? {} : { request: translateTransform(request, `${path}.request`, context) }),
            ...(response === undefined ? {} : { response: translateTransform(response, `${path}.response`, context) }),
          },
        });
      },
    );
    return { case: "transformation", value: create(TransformationChoiceSchema, { branches }) };
  },
};

function translateTransform(transform: ApiTransform, path: string, context: UnitContext): Transform {
  const checked = (text: string | undefined, at: string): string => checkExpression(text, `${path}.${at}`, context);
  const headers = (field: "set" | "add") =>
    (transform[field] ?? []).map(({ name, value }, at) => ({
      name,
      expression: checked(value, `${field}[${at}].value`),
    }));
  return create(TransformSchema, {
    set: headers("set"),
    add: headers("add"),
    remove: [...(transform.remove ?? [])],
    body: checked(transform.body, "body"),
    metadata: expressionMap(transform.metadata, `${path}.metadata`, context),
  });
}
