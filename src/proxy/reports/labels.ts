/** `metrics` of a Bind: more labels of the metrics about a request (observability.md 2). */
import type { MetricLabels } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../cel/expression.ts";
import type { ReportDeps } from "./reports.ts";

export interface MetricLabel {
  readonly name: string;
  readonly value: Expression;
}

export function compileLabels({ add }: MetricLabels, { expression }: ReportDeps): readonly MetricLabel[] {
  return add.map(({ name, expression: source }) => ({ name, value: expression(source, "log") }));
}
