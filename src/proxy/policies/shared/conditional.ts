/**
 * The choice between the branches of a conditional policy: the first branch whose condition is true, or that has no
 * condition. The result is undefined when no branch is chosen; the policy then does nothing.
 */
import { CelError } from "../../../cel/errors.ts";
import type { Expression } from "../../../cel/expression.ts";
import { ProxyError } from "../../errors.ts";
import type { Exchange } from "../../pipeline/exchange.ts";
import type { PolicyDeps } from "../policy.ts";

/**
 * What a condition means that fails or yields something else than a boolean. Policies that protect choose its branch:
 * otherwise a client could leave out what the condition reads, and go unprotected. All others pass the branch over.
 */
export type OnFailedCondition = "choose" | "pass over";

/**
 * Compiles every branch once. The caller keeps the result of a choice for the response phase: it is made once per
 * request, at the policy's own place.
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
 * A condition that does not even compile, in an object that no webhook has seen, ends the request under every policy: it
 * says nothing about which branch is meant.
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
