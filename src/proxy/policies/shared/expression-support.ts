/** What a failed expression means to a policy: never an exception, always the rule of the place where it stands. */
import type { JsonValue } from "@bufbuild/protobuf";
import { bodyOf } from "../../../cel/compile/compile-expression.ts";
import { CelError } from "../../../cel/errors.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { Scope } from "../../../cel/scope.ts";
import { scalarText } from "../../../cel/text.ts";

/** Whether a condition holds; failures and values that are not booleans do not. */
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

/** The text of a scalar result; undefined for a failure, null, and what has no text. */
export function textOf(expression: Expression, scope: Scope): string | undefined {
  return scalarText(valueOf(expression, scope));
}

/**
 * A result as a header field's value: one character per UTF-8 byte, as header lists hold it.
 * @returns undefined for a failure, null, and text that a field cannot carry (a line break would start a new field)
 */
export function fieldValueOf(expression: Expression, scope: Scope): string | undefined {
  const value = valueOf(expression, scope);
  const bytes = value instanceof Uint8Array ? Buffer.from(value) : textBytes(scalarText(value));
  const text = bytes?.toString("latin1");
  return text === undefined || !FIELD_VALUE.test(text) ? undefined : text.trim();
}

function textBytes(text: string | undefined): Buffer | undefined {
  return text === undefined ? undefined : Buffer.from(text);
}

/** RFC 9110 §5.5: visible characters, space, tab and bytes above ASCII. */
// oxlint-disable-next-line no-control-regex -- the tab is the one control character that is allowed
const FIELD_VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;

/** A result as a value of JSON. @returns undefined for a failure and for what has no JSON form */
export function jsonOf(expression: Expression, scope: Scope): JsonValue | undefined {
  try {
    return toJson(expression.evaluate(scope));
  } catch (error) {
    if (error instanceof CelError) return undefined;
    throw error;
  }
}

/** @throws CelError for what has no JSON form */
export function toJson(value: unknown): JsonValue {
  // In a list, because text and bytes alone would be taken as they are. What was just printed can be read.
  const [json] = JSON.parse(bodyOf([value]).toString()) as [JsonValue];
  return json;
}
