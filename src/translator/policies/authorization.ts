/** Translates `traffic.authorization` into one rule. The data plane collects the rules of all levels. */
import {
  AuthorizationAction,
  AuthorizationRuleSchema,
  AuthorizationSchema,
  type Authorization,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { create } from "@bufbuild/protobuf";
import type { Authorization as ApiAuthorization } from "../../../generated/types/traffic.ts";
import type { CelPhase } from "../../cel/environments/phases.ts";
import { checkExpression, type ExpressionContext, type UnitTranslator } from "./shared/unit.ts";

const ACTIONS = {
  Allow: AuthorizationAction.ALLOW,
  Deny: AuthorizationAction.DENY,
  Require: AuthorizationAction.REQUIRE,
} as const;

export const authorization: UnitTranslator = {
  translate({ authorization: block }, context) {
    if (block === undefined) return undefined;
    return { case: "authorization", value: translateAuthorization(block, "authorization", context, "request") };
  },
};

/** @param place the CEL phase, which decides which variables the expressions may read */
export function translateAuthorization(
  { action, policy }: ApiAuthorization,
  path: string,
  context: ExpressionContext,
  place: CelPhase,
): Authorization {
  const expressions = policy.matchExpressions.map((text, at) =>
    checkExpression(text, `${path}.policy.matchExpressions[${at}]`, context, place),
  );
  const rule = create(AuthorizationRuleSchema, { action: ACTIONS[action ?? "Allow"], expressions });
  return create(AuthorizationSchema, { rules: [rule] });
}
