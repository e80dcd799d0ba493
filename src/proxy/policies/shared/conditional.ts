/**
 * Chooses between the branches of a conditional policy: the first branch whose condition is true or absent. The result
 * is undefined when no branch applies; the policy then does nothing.
 */
import { CelError } from "../../../cel/errors.ts";
import type { Expression } from "../../../cel/expression.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import type { PolicyDeps } from "../policy.ts";

/**
 * How to treat a condition that fails or is not a boolean. Policies that protect choose the branch: otherwise a client
 * could evade the protection by leaving out what the condition reads. All others pass the branch over.
 */
export type OnFailedCondition = "choose" | "pass over";

/**
 * Compiles every branch once. The choice is made once per request, when the policy runs; the caller keeps it for the
 * response.
 */
export function compileChoice<Branch extends { readonly condition: string }, Compiled>(
  branches: readonly Branch[],
  compile: (branch: Branch) => Compiled,
  deps: PolicyDeps,
  onFailure: OnFailedCondition,
): (exchange: Exchange) => Compiled | undefined {
  const options = branches.map((branch) => ({
    condition: branch.condition === "" ? undefined : deps.expression(branch.condition, "request"),
    compiled: compile(branch),
  }));
  const isFailureTrue = onFailure === "choose";
  return (exchange) =>
    options.find(({ condition }) => condition === undefined || chooses(condition, exchange, isFailureTrue))?.compiled;
}

/**
 * A condition that does not compile (in an object that the webhook did not check) ends the request under every policy,
 * because it cannot tell which branch is meant.
 */
function chooses(condition: Expression, exchange: Exchange, isFailureTrue: boolean): boolean {
  try {
    const value = condition.evaluate(exchange);
    return typeof value === "boolean" ? value : isFailureTrue;
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    if (error.code === "does_not_compile") throw new ProxyError("policy_refused", { detail: error.message });
    return isFailureTrue;
  }
}
