/** The choice between branches: the first whose condition is true, one without a condition always, none is allowed. */
import { CelError } from "../../cel/errors.ts";
import type { Expression } from "../../cel/expression.ts";
import { ProxyError } from "../errors.ts";
import type { Exchange } from "../pipeline/exchange.ts";
import type { PolicyDeps } from "./policy.ts";

/**
 * Compiles every branch once. The caller keeps the result of a choice for the response phase: it is made once per
 * request, at the policy's own place.
 */
export function compileChoice<Branch extends { readonly condition: string }, Compiled>(
  branches: readonly Branch[],
  compile: (branch: Branch) => Compiled,
  deps: PolicyDeps,
): (exchange: Exchange) => Compiled | undefined {
  const options = branches.map((branch) => ({
    condition: branch.condition === "" ? undefined : deps.expression(branch.condition, "request"),
    compiled: compile(branch),
  }));
  return (exchange) =>
    options.find(({ condition }) => condition === undefined || chooses(condition, exchange))?.compiled;
}

/**
 * A condition that fails is not met. One that does not even compile can choose nothing, and to pass over it would open
 * what its policy closes: the request ends.
 */
function chooses(condition: Expression, exchange: Exchange): boolean {
  try {
    return condition.evaluate(exchange) === true;
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    if (error.code === "does_not_compile") throw new ProxyError("policy_refused", { detail: error.message });
    return false;
  }
}
