/** Expressions that users write into our kinds: each must compile and read only what exists where it stands. */
import { parseExpression } from "../cel/compile-expression.ts";
import { REQUEST_ENVIRONMENT } from "../cel/environment.ts";
import { messageOf } from "../lib/errors.ts";
import { print, violation } from "./messages.ts";
import { childPath, memberOf } from "./paths.ts";
import type { Violation } from "./violation.ts";

/** Path pattern → where the expression runs. "*" stands for each item of a list or each value of a map. */
export type ExpressionPaths = readonly (readonly string[])[];

export function expressionViolations(object: unknown, paths: ExpressionPaths): Violation[] {
  return paths.flatMap((pattern) => [...textsAt(object, pattern, "")].flatMap(({ path, text }) => faultOf(path, text)));
}

function faultOf(path: string, text: string): Violation[] {
  try {
    parseExpression(text, REQUEST_ENVIRONMENT);
    return [];
  } catch (error) {
    return [
      violation(
        path,
        "FieldValueInvalid",
        `Invalid value: ${print(text)}: the expression does not compile: ${messageOf(error)}`,
      ),
    ];
  }
}

/** Every text below `value` that the pattern reaches. */
export function* textsAt(
  value: unknown,
  pattern: readonly string[],
  path: string,
): Generator<{ path: string; text: string }> {
  const [step, ...rest] = pattern;
  if (step === undefined) {
    if (typeof value === "string") yield { path, text: value };
    return;
  }
  if (step !== "*") {
    yield* textsAt(memberOf(value, step), rest, childPath(path, step));
    return;
  }
  if (Array.isArray(value)) for (const [at, item] of value.entries()) yield* textsAt(item, rest, childPath(path, at));
  else if (typeof value === "object" && value !== null) {
    for (const name of Object.keys(value)) yield* textsAt(memberOf(value, name), rest, childPath(path, name));
  }
}
