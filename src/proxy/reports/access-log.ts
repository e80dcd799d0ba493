/** `accessLog` of a Bind: which requests get a line, and what stands in it (observability.md 1). */
import type { AccessLog } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Scope } from "../../cel/scope.ts";
import { holds } from "../policies/expression-support.ts";
import type { ReportDeps } from "./reports.ts";

export interface LogReport {
  /** Whether what is over gets a line. */
  wants(scope: Scope): boolean;
}

/** Nobody said anything. */
export const EVERYTHING: LogReport = { wants: () => true };

export function compileLogReport({ filter }: AccessLog, deps: ReportDeps): LogReport {
  return { wants: compileFilter(filter, deps) };
}

/** Only `true` lets something through; an expression that fails does not. @param source empty: everything */
export function compileFilter(source: string, { expression }: ReportDeps): (scope: Scope) => boolean {
  if (source === "") return EVERYTHING.wants;
  const filter = expression(source, "log");
  return (scope) => holds(filter, scope);
}
