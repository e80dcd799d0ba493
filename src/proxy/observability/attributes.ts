/**
 * `attributes` of a report: the default fields that it omits, and the attributes that it adds by expressions when the
 * request has ended. An attribute whose expression fails or yields null is dropped; a flattened result becomes one
 * attribute per entry (docs/reference/expressions.md).
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
  /** Names of default fields that the report omits, because they are removed or replaced. */
  readonly hidden: ReadonlySet<string>;
  /** Computes the added attributes in their order; undefined when there are none. */
  readonly added: ((scope: Scope) => ReadonlyMap<string, AttributeValue>) | undefined;
}

/** Limits of one report: clients may choose the entries of a flattened map. */
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

/** When two attributes have the same name, the later one wins. */
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
