/** `metrics` of a Bind: additional labels for the metrics about requests (docs/reference/metrics.md). */
import type { MetricLabels } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { bodyOf } from "../../cel/compile/compile-expression.ts";
import { CelError } from "../../cel/errors.ts";
import type { Expression } from "../../cel/expression.ts";
import type { Scope } from "../../cel/scope.ts";
import { scalarText } from "../../cel/text.ts";
import { ConfigError } from "../../lib/errors.ts";
import { reservedLabels } from "../../telemetry/metric-table.ts";
import { labelValue, UNKNOWN } from "../../telemetry/label-value.ts";
import type { ReportDeps } from "./report-deps.ts";

/** The same rule as in the controller; Prometheus reserves names that begin with two underscores. */
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;
const TAKEN: ReadonlySet<string> = new Set(reservedLabels());

export interface MetricLabel {
  readonly name: string;
  readonly value: Expression;
}

export function compileLabels({ add }: MetricLabels, { expression }: ReportDeps): readonly MetricLabel[] {
  return add.map(({ name, expression: source }) => ({ name, value: expression(source, "log") }));
}

/** @throws ConfigError for a name that would break the text format of metrics */
export function checkLabels(labels: MetricLabels | undefined): void {
  for (const { name } of labels?.add ?? [])
    if (!LABEL_NAME.test(name) || TAKEN.has(name))
      throw new ConfigError(`${JSON.stringify(name)} is no label of metrics`);
}

const NONE: readonly string[] = [];

/** @returns alternating names and values */
export function labelsOf(labels: readonly MetricLabel[], scope: Scope): readonly string[] {
  if (labels.length === 0) return NONE;
  const all: string[] = [];
  for (const { name, value } of labels) all.push(name, labelValue(textOf(value, scope)));
  return all;
}

/** Prints a list or map as JSON; "unknown" when the expression fails or yields null. */
function textOf(expression: Expression, scope: Scope): string {
  try {
    const value = expression.evaluate(scope);
    return value === null ? UNKNOWN : (scalarText(value) ?? bodyOf(value).toString());
  } catch (error) {
    if (error instanceof CelError) return UNKNOWN;
    throw error;
  }
}
