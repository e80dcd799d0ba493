/**
 * `attributes` of a report: default fields that it leaves out, and what it adds by expressions when all is over. A pair
 * whose expression fails or gives null is dropped; a flattened result becomes one pair per entry (runtime/cel.md 4).
 */
import type { NamedExpression, ReportAttributes } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../cel/expression.ts";
import type { Scope } from "../../cel/scope.ts";
import { scalarText } from "../../cel/text.ts";
import { Flattened } from "../../cel/values.ts";
import type { AttributeValue } from "../../telemetry/attributes.ts";
import { valueOf } from "../policies/shared/expression-support.ts";
import { lengthOf, toAttribute } from "./attribute-value.ts";

export interface CompiledAttributes {
  /** Names of default fields that have no place in the report: removed, or replaced. */
  readonly hidden: ReadonlySet<string>;
  /** What is added, by name in its order; undefined: nothing ever is. */
  readonly added: ((scope: Scope) => ReadonlyMap<string, AttributeValue>) | undefined;
}

/** Of one report: clients choose what stands in a flattened map. */
const MAX_PAIRS = 1_024;
const MAX_LENGTH = 1_048_576;

export function compileAttributes(
  spec: ReportAttributes | undefined,
  compile: (source: string) => Expression,
): CompiledAttributes {
  const { remove = [], add = [] } = spec ?? {};
  const named = compileNamed(add, compile);
  return {
    hidden: new Set([...remove, ...add.map(({ name }) => name)]),
    added: named.length === 0 ? undefined : (scope) => evaluateNamed(named, scope),
  };
}

export interface CompiledName {
  readonly name: string;
  readonly expression: Expression;
}

export function compileNamed(
  add: readonly NamedExpression[],
  compile: (source: string) => Expression,
): readonly CompiledName[] {
  return add.map(({ name, expression }) => ({ name, expression: compile(expression) }));
}

/** Of two pairs with one name the later one stands. */
export function evaluateNamed(named: readonly CompiledName[], scope: Scope): ReadonlyMap<string, AttributeValue> {
  const result = new Map<string, AttributeValue>();
  let left = MAX_LENGTH;
  const put = (name: string, result_: unknown): void => {
    const value = toAttribute(result_);
    if (value === undefined || result.size >= MAX_PAIRS) return;
    left -= name.length + lengthOf(value);
    if (left >= 0) result.set(name, value);
  };
  for (const { name, expression } of named) {
    const value = valueOf(expression, scope);
    if (!(value instanceof Flattened)) put(name, value);
    else for (const [key, member] of value.members) put(`${name}.${scalarText(key) ?? ""}`, member);
  }
  return result;
}
