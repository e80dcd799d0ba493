/**
 * Checks expressions that deny requests for values that may be missing. semantics.ts uses it.
 *
 * Rules of a Deny, and conditions of extAuth and rateLimit, fail closed when a header, a claim or a parameter that they
 * read is missing, which users rarely expect: they get a warning. A rule of a Deny that reads a variable which never
 * has a value is an error.
 */
import { findAbsentReads } from "../../cel/absent-reads.ts";
import { compileExpression } from "../../cel/compile/compile-expression.ts";
import { CelError } from "../../cel/errors.ts";
import { environmentOf } from "../../cel/environments/phases.ts";
import type { ExpressionPlace } from "./expressions.ts";
import { violation } from "../messages.ts";
import { memberOf, textsAt, valuesAt } from "../paths.ts";
import { print } from "../print.ts";
import type { Violation } from "../violation.ts";

/**
 * Variables that expressions may name but that never have a value where a Deny reads them. Such a rule denies every
 * request, or none when it tests the variable with has(). In the phase PreRouting authorization runs before the
 * policies that write `extproc` and `metadata`; after routing it can read what they wrote before routing.
 */
const NEVER_SET: readonly { readonly read: string; readonly only?: "PreRouting" }[] = [
  { read: "source.unverifiedWorkload" },
  { read: "extproc", only: "PreRouting" },
  { read: "metadata", only: "PreRouting" },
];

/** @param places the places of the kind's expressions */
export function* absentValueViolations(object: unknown, places: readonly ExpressionPlace[]): Generator<Violation> {
  const [phase] = textsAt(object, ["spec", "traffic", "phase"]);
  for (const place of places) {
    const { path } = place;
    const isEarly = phase?.text === "PreRouting" && path[1] === "traffic";
    if (!isCondition(path))
      for (const { path: at, text } of denyRules(object, path)) yield* neverSetViolations(at, text, place, isEarly);
    const consequence = isCondition(path) ? "and its branch is chosen" : "and the request is denied";
    for (const { path: at, text } of isCondition(path) ? textsAt(object, path) : denyRules(object, path))
      yield* warnings(at, text, place, consequence);
  }
}

function* neverSetViolations(
  path: string,
  text: string,
  { environment }: ExpressionPlace,
  isEarly: boolean,
): Generator<Violation> {
  const reads = readsOf(text, environment);
  for (const { read, only } of NEVER_SET) {
    if (!reads.has(read) || (only !== undefined && !isEarly)) continue;
    const when = only === undefined ? "" : ` in the phase ${only}`;
    const message = `Invalid value: ${print(text)}: reads ${read}, which never has a value here${when}: the rule denies every request, or none`;
    const next =
      only === undefined
        ? "decide by another variable"
        : "leave traffic.phase out, so that the rule runs after routing";
    yield violation(path, "FieldValueInvalid", message, next);
  }
}

/**
 * Returns the variables and fields that an expression reads; none when it does not compile, which expressions.ts
 * reports.
 */
function readsOf(text: string, environment: ExpressionPlace["environment"]): ReadonlySet<string> {
  try {
    const { roots, attributes } = compileExpression(text, environmentOf(environment)).reads;
    return new Set([...roots, ...attributes]);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return new Set();
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
