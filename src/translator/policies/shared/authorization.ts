/** Translates an authorization block into one rule, for `traffic` and for the frontend of a Gateway. */
import { create } from "@bufbuild/protobuf";
import {
  type Authorization,
  AuthorizationAction,
  AuthorizationRuleSchema,
  AuthorizationSchema,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Authorization as ApiAuthorization } from "../../../../generated/types/traffic.ts";
import type { CelPhase } from "../../../cel/environments/phases.ts";
import { type ExpressionContext, checkExpression } from "./unit.ts";

const ACTIONS = {
  Allow: AuthorizationAction.ALLOW,
  Deny: AuthorizationAction.DENY,
  Require: AuthorizationAction.REQUIRE,
} as const;

/** @param place the CEL phase, which decides which variables the expressions may read */
export function translateAuthorization(
  { action, policy }: ApiAuthorization,
  path: string,
  context: ExpressionContext,
  place: CelPhase,
): Authorization {
  const expressions = policy.matchExpressions.map((text, at) =>
    checkExpression(text, `${path === "" ? "" : `${path}.`}policy.matchExpressions[${at}]`, context, place),
  );
  const rule = create(AuthorizationRuleSchema, { action: ACTIONS[action ?? "Allow"], expressions });
  return create(AuthorizationSchema, { rules: [rule] });
}
