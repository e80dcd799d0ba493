/**
 * Warns about expressions that decide on a request and fail when a header, a claim or a parameter is missing: rules of
 * a Deny, and conditions of extAuth and rateLimit. semantics.ts uses it. Such an expression fails closed, which is
 * rarely what the user meant.
 */
import { findAbsentReads } from "../cel/absent-reads.ts";
import { CelError } from "../cel/errors.ts";
import { environmentOf } from "../cel/phases.ts";
import type { ExpressionPlace } from "./expressions.ts";
import { violation } from "./messages.ts";
import { memberOf, textsAt, valuesAt } from "./paths.ts";
import type { Violation } from "./violation.ts";

/** @param places the places of the kind's expressions */
export function* absentValueViolations(object: unknown, places: readonly ExpressionPlace[]): Generator<Violation> {
  for (const place of places) {
    const { path } = place;
    const consequence = isCondition(path) ? "and its branch is chosen" : "and the request is denied";
    for (const { path: at, text } of isCondition(path) ? textsAt(object, path) : denyRules(object, path))
      yield* warnings(at, text, place, consequence);
  }
}

function isCondition(path: readonly string[]): boolean {
  return path.at(-1) === "condition" && (path.includes("extAuth") || path.includes("rateLimit"));
}

/** Returns the rules of an authorization whose action is Deny; none for other expressions. */
function denyRules(
  object: unknown,
  path: readonly string[],
): readonly { readonly path: string; readonly text: string }[] {
  if (path.at(-2) !== "matchExpressions") return [];
  return valuesAt(object, path.slice(0, -3)).flatMap(({ path: block, value }) =>
    memberOf(value, "action") === "Deny" ? textsAt(value, path.slice(-3), block) : [],
  );
}

function* warnings(
  path: string,
  text: string,
  { environment }: ExpressionPlace,
  consequence: string,
): Generator<Violation> {
  try {
    for (const read of findAbsentReads(text, environmentOf(environment))) {
      const message = `reads ${read.text}, which a request may not have: then the expression fails, ${consequence}`;
      const test = read.test === undefined ? "" : `ask first: ${read.test} && …, or `;
      const next = `${test}give a default: default(${read.text}, "")`;
      yield { ...violation(path, "FieldValueInvalid", message, next), severity: "warning" };
    }
  } catch (error) {
    // expressions.ts reports an expression that cannot be parsed, with more detail.
    if (!(error instanceof CelError)) throw error;
  }
}
