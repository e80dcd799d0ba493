/**
 * Checks the expressions that users write into our kinds: each must compile, and read only variables that exist in its
 * phase. semantics.ts uses it.
 */
import { parseExpression } from "../../cel/compile/compile-expression.ts";
import { REQUEST_ENVIRONMENT } from "../../cel/environments/index.ts";
import { CelError } from "../../cel/errors.ts";
import { type CelPhase, environmentOf } from "../../cel/environments/phases.ts";
import { parseDuration } from "../../lib/time/duration.ts";
import { messageOf } from "../../lib/errors.ts";
import { violation } from "../messages.ts";
import { memberOf, textsAt, valuesAt } from "../paths.ts";
import { print } from "../print.ts";
import { ValidatedTextCache } from "./validated-text-cache.ts";
import type { Violation } from "../violation.ts";

/**
 * A path pattern and the phase in which its expression runs. "*" stands for each item of a list or each value of a map.
 */
export interface ExpressionPlace {
  readonly path: readonly string[];
  readonly environment: CelPhase;
  /** Another form that the text may have; such a text is not an expression. */
  readonly or?: "duration";
  /** The phase that it runs in instead when the fields beside it have these values. */
  readonly unless?: { readonly fields: Readonly<Record<string, string>>; readonly environment: CelPhase };
}

export function* expressionViolations(object: unknown, places: readonly ExpressionPlace[]): Generator<Violation> {
  const isEarly = textsAt(object, PHASE).some(({ text }) => text === "PreRouting");
  for (const place of places) {
    const { path: pattern, or } = place;
    for (const { path, text, environment } of expressionsAt(object, place)) {
      const phase = isEarly && environment === "request" && pattern[1] === "traffic" ? "gateway" : environment;
      if (or !== "duration" || parseDuration(text) === undefined) yield* checkExpression(path, text, phase);
    }
  }
}

/** Returns every text at a place, each with the phase in which it runs. */
function expressionsAt(
  object: unknown,
  { path: pattern, environment, unless }: ExpressionPlace,
): readonly { readonly path: string; readonly text: string; readonly environment: CelPhase }[] {
  if (unless === undefined) return textsAt(object, pattern).map((found) => ({ ...found, environment }));
  return valuesAt(object, pattern.slice(0, -1)).flatMap(({ path: block, value }) => {
    const isOther = Object.entries(unless.fields).every(([field, expected]) => memberOf(value, field) === expected);
    const phase = isOther ? unless.environment : environment;
    return textsAt(value, pattern.slice(-1), block).map((found) => ({ ...found, environment: phase }));
  });
}

/** Path of the field that decides for all of `traffic` whether the route is known yet. */
const PHASE = ["spec", "traffic", "phase"];

/** Cache of valid expressions; about five megabytes at most. */
const sound = new ValidatedTextCache(16_384);

function checkExpression(path: string, text: string, place: CelPhase): readonly Violation[] {
  return sound.check(place, text, () => compileViolations(path, text, place));
}

function compileViolations(path: string, text: string, place: CelPhase): Violation[] {
  try {
    parseExpression(text, environmentOf(place));
    return [];
  } catch (error) {
    const message = `Invalid value: ${print(text)}: the expression does not compile: ${messageOf(error)}`;
    const offset = error instanceof CelError ? error.position : undefined;
    const found = violation(path, "FieldValueInvalid", message, nextStep(error, text, place));
    return [offset === undefined ? found : { ...found, offset }];
  }
}

/** Suggests the variables of the phase. A variable that exists only in another phase is not a typing error. */
function nextStep(error: unknown, text: string, place: CelPhase): string {
  if (!(error instanceof CelError) || error.code !== "unknown_variable") return "";
  try {
    parseExpression(text, REQUEST_ENVIRONMENT);
  } catch {
    // The expression is invalid in every phase, and the message of the first error is enough.
    return "";
  }
  return `in the ${place} phase there are: ${[...environmentOf(place).variables.keys()].join(", ")}`;
}
