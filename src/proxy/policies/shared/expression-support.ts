/**
 * Evaluates expressions for policies and reports: a failed evaluation becomes a value, and the policy decides what it
 * means.
 */
import type { JsonValue } from "@bufbuild/protobuf";
import { bodyOf } from "../../../cel/compile/compile-expression.ts";
import { CelError } from "../../../cel/errors.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { Scope } from "../../../cel/scope.ts";
import { scalarText } from "../../../cel/text.ts";
import { isFieldValue } from "../../exchange/fields.ts";

/** Returns true when a condition is true; failures and values that are not booleans count as false. */
export function holds(expression: Expression, scope: Scope): boolean {
  return valueOf(expression, scope) === true;
}

/** @returns undefined when the evaluation fails */
export function valueOf(expression: Expression, scope: Scope): unknown {
  try {
    return expression.evaluate(scope);
  } catch (error) {
    if (error instanceof CelError) return undefined;
    throw error;
  }
}

/** Returns the text of a scalar; undefined for a failure, null, and values without a text form. */
export function textOf(expression: Expression, scope: Scope): string | undefined {
  return scalarText(valueOf(expression, scope));
}

/**
 * Returns a result as the value of a header field: one character per UTF-8 byte, as header lists hold it.
 * @returns undefined for a failure, null, and text that a field cannot carry (a line break would start a new field)
 */
export function fieldValueOf(expression: Expression, scope: Scope): string | undefined {
  const value = valueOf(expression, scope);
  const bytes = value instanceof Uint8Array ? Buffer.from(value) : textBytes(scalarText(value));
  const text = bytes?.toString("latin1");
  return text === undefined || !isFieldValue(text) ? undefined : text.trim();
}

function textBytes(text: string | undefined): Buffer | undefined {
  return text === undefined ? undefined : Buffer.from(text);
}

/** Returns a result as a JSON value; undefined for a failure and for values without a JSON form. */
export function jsonOf(expression: Expression, scope: Scope): JsonValue | undefined {
  try {
    return toJson(expression.evaluate(scope));
  } catch (error) {
    if (error instanceof CelError) return undefined;
    throw error;
  }
}

/** @throws CelError for a value without a JSON form */
export function toJson(value: unknown): JsonValue {
  // Wrapped in a list, because bodyOf returns bare text and bytes unquoted. The output is JSON by construction.
  const [json] = JSON.parse(bodyOf([value]).toString()) as [JsonValue];
  return json;
}
