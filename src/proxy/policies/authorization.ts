/**
 * Decides by expressions whether a request goes on. In this order: any deny rule true refuses, any require rule not
 * true refuses, any allow rule true lets pass, and otherwise it passes only when there are no allow rules. A failed
 * expression counts as false; a deny rule that does not even compile refuses, so that an error cannot open a route.
 */
import { type Authorization, AuthorizationAction } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { CelError } from "../../cel/errors.ts";
import type { Expression } from "../../cel/expression.ts";
import { ConfigError } from "../../lib/errors.ts";
import { ProxyError } from "../errors.ts";
import type { Exchange } from "../pipeline/exchange.ts";
import { holds } from "./expression-support.ts";
import type { Policy } from "./policy.ts";

export const authorization: Policy<Authorization> = {
  name: "authorization",
  compile({ rules }, deps) {
    const deny: Expression[] = [];
    const require: Expression[] = [];
    const allow: Expression[] = [];
    for (const { action, expressions } of rules) {
      const compiled = expressions.map((source) => deps.expression(source));
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
    return function authorization(exchange, next) {
      for (const expression of deny) if (denies(expression, exchange)) refuse("deny", expression);
      for (const expression of require) if (!holds(expression, exchange)) refuse("require", expression);
      if (allow.length > 0 && !allow.some((expression) => holds(expression, exchange))) {
        throw new ProxyError("authorization_failed", { detail: "no allow rule matched" });
      }
      return next();
    };
  },
};

function denies(expression: Expression, exchange: Exchange): boolean {
  try {
    return expression.evaluate(exchange) === true;
  } catch (error) {
    if (error instanceof CelError) return error.code === "does_not_compile";
    throw error;
  }
}

function refuse(kind: string, { source }: Expression): never {
  throw new ProxyError("authorization_failed", { detail: `${kind} rule: ${source}` });
}
