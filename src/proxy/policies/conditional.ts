/** The choice between branches: the first whose condition is true, one without a condition always, none is allowed. */
import type { Exchange } from "../pipeline/exchange.ts";
import { holds } from "./expression-support.ts";
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
    condition: branch.condition === "" ? undefined : deps.expression(branch.condition),
    compiled: compile(branch),
  }));
  return (exchange) => options.find(({ condition }) => condition === undefined || holds(condition, exchange))?.compiled;
}
