/**
 * The meaning of authorization rules, for requests and for connections. In this order: any deny rule true refuses, any
 * require rule not true refuses, any allow rule true lets pass, and otherwise it passes only when there are no allow rules.
 * A failed expression counts as false; a deny rule that does not even compile refuses, so that an error cannot open anything.
 */
import { AuthorizationAction, type AuthorizationRule } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { CelError } from "../../cel/errors.ts";
import type { Expression } from "../../cel/expression.ts";
import type { Scope } from "../../cel/scope.ts";
import { ConfigError } from "../../lib/errors.ts";
import { holds } from "./expression-support.ts";

/** @returns why it is refused, for the log; undefined: it passes */
export type Decide = (scope: Scope) => string | undefined;

/** @throws ConfigError for a rule without an action */
export function compileRules(rules: readonly AuthorizationRule[], expression: (source: string) => Expression): Decide {
  const deny: Expression[] = [];
  const require: Expression[] = [];
  const allow: Expression[] = [];
  for (const { action, expressions } of rules) {
    const compiled = expressions.map((source) => expression(source));
    switch (action) {
      case AuthorizationAction.DENY:
        deny.push(...compiled);
        break;
      case AuthorizationAction.REQUIRE:
        require.push(...compiled);
        break;
      case AuthorizationAction.ALLOW:
        allow.push(...compiled);
        break;
      case AuthorizationAction.UNSPECIFIED:
        throw new ConfigError("an authorization rule has no action");
    }
  }
  return (scope) => {
    for (const rule of deny) if (denies(rule, scope)) return `deny rule: ${rule.source}`;
    for (const rule of require) if (!holds(rule, scope)) return `require rule: ${rule.source}`;
    if (allow.length > 0 && !allow.some((rule) => holds(rule, scope))) return "no allow rule matched";
    return undefined;
  };
}

function denies(expression: Expression, scope: Scope): boolean {
  try {
    return expression.evaluate(scope) === true;
  } catch (error) {
    if (error instanceof CelError) return error.code === "does_not_compile";
    throw error;
  }
}
