/**
 * Evaluates authorization rules, for requests (policies/authorization.ts), for connections (listeners/frontends.ts) and
 * for items of MCP servers (mcp/authorization.ts).
 * The order is:
 * 1. a deny rule that is not false refuses
 * 2. a require rule that is not true refuses
 * 3. an allow rule that is true lets pass
 * 4. otherwise it passes only when there are no allow rules
 *
 * An expression that fails, or yields a value that is not a boolean, counts against the request in each of them: a
 * client must not evade a deny rule by leaving out the header that the rule reads.
 */
import { AuthorizationAction, type AuthorizationRule } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { Scope } from "../../../cel/scope.ts";
import { ConfigError } from "../../../lib/errors.ts";
import type { AuthorizationRuleResult } from "../../exchange/debug-trace.ts";
import { holds, valueOf } from "./expression-support.ts";

/** Returns the reason of a rejection, for the log; undefined when the request passes. */
export type Decide = (scope: Scope) => string | undefined;

/**
 * @param concerns tells for a deny rule that failed whether it is about what is being decided; by default it is
 * @throws ConfigError for a rule without an action
 */
export function compileRules(
  rules: readonly AuthorizationRule[],
  expression: (source: string) => Expression,
  concerns: (rule: Expression, scope: Scope) => boolean = () => true,
): Decide {
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
    for (const rule of deny) {
      const value = valueOf(rule, scope);
      if (value !== false && (value !== undefined || concerns(rule, scope)))
        return `${value === true ? "deny rule" : "deny rule failed"}: ${rule.source}`;
    }
    for (const rule of require) if (!holds(rule, scope)) return `require rule: ${rule.source}`;
    if (allow.length > 0 && !allow.some((rule) => holds(rule, scope))) return "no allow rule matched";
    return undefined;
  };
}

/** A rule without an action does not compile. */
function modeOf(action: AuthorizationAction): AuthorizationRuleResult["mode"] {
  if (action === AuthorizationAction.ALLOW) return "allow";
  return action === AuthorizationAction.REQUIRE ? "require" : "deny";
}

/** Evaluates every expression of the rules, for operators who follow a request. It compiles them anew, which is slow. */
export function explainRules(
  rules: readonly AuthorizationRule[],
  expression: (source: string) => Expression,
  exchange: Scope,
): AuthorizationRuleResult[] {
  // The rules were shown as expressions when they decided, so this scope shows nothing.
  const scope: Scope = { root: (name) => exchange.root(name) };
  return rules.flatMap(({ action, expressions }) =>
    expressions.map((name) => ({ name, matched: holds(expression(name), scope), mode: modeOf(action) })),
  );
}
