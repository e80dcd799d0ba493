/** Shows what expressions return in traced requests. The data plane wraps every expression that it compiles with it. */
import type { Expression } from "../../cel/expression.ts";
import type { Scope } from "../../cel/scope.ts";
import { messageOf } from "../../lib/errors.ts";
import type { DebugTrace } from "../exchange/debug-trace.ts";
import type { DebugTraces } from "./debug-traces.ts";

/** @param traces whose `active` says whether any request of this thread is traced; otherwise nothing else is looked at */
export function traceExpression(expression: Expression, traces: Pick<DebugTraces, "active">): Expression {
  return {
    ...expression,
    evaluate(scope) {
      const debug = traces.active === 0 ? undefined : debugOf(scope);
      return debug === undefined ? expression.evaluate(scope) : evaluateTraced(expression, scope, debug);
    },
  };
}

/** Exchanges have it; scopes of other kinds are not traced. */
function debugOf(scope: Scope & { readonly debug?: DebugTrace | undefined }): DebugTrace | undefined {
  return scope.debug;
}

function evaluateTraced(expression: Expression, scope: Scope, debug: DebugTrace): unknown {
  const startedAtMs = performance.now();
  const { source: expr, reads } = expression;
  const requestState = debug.state(reads.roots);
  try {
    const result = expression.evaluate(scope);
    debug.record({ type: "cel", expr, requestState, result }, { startedAtMs });
    return result;
  } catch (error) {
    const result = `failed: ${messageOf(error)}`;
    debug.record({ type: "cel", expr, requestState, result }, { startedAtMs, severity: "warn" });
    throw error;
  }
}
