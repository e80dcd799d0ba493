/** `traffic.authorization` → one rule; rules of all levels are collected by the data plane. */
import {
  AuthorizationAction,
  AuthorizationRuleSchema,
  AuthorizationSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { create } from "@bufbuild/protobuf";
import { checkExpression, type UnitTranslator } from "./unit.ts";

const ACTIONS = {
  Allow: AuthorizationAction.ALLOW,
  Deny: AuthorizationAction.DENY,
  Require: AuthorizationAction.REQUIRE,
} as const;

export const authorization: UnitTranslator = {
  name: "authorization",
  translate({ authorization: block }, context) {
    if (block === undefined) return undefined;
    const expressions = block.policy.matchExpressions.map((text, at) =>
      checkExpression(text, `authorization.policy.matchExpressions[${at}]`, context),
    );
    const rule = create(AuthorizationRuleSchema, { action: ACTIONS[block.action ?? "Allow"], expressions });
    return { case: "authorization", value: create(AuthorizationSchema, { rules: [rule] }) };
  },
};
