/**
 * Checks the regular expressions of users in routes and policies; semantics.ts uses it. The schema takes any text. The
 * gateway runs them as RE2 without backtracking, so that no match can stall (ReDoS), and limits length and repetition,
 * so that no compiled pattern is large.
 */
import { findPatternError as reasonOf } from "../../cel/check/constants.ts";
import { violation } from "../messages.ts";
import { childPath, memberOf, valuesAt } from "../paths.ts";
import { print } from "../print.ts";
import { ValidatedTextCache } from "./validated-text-cache.ts";
import type { Violation } from "../violation.ts";

const MATCH = ["spec", "rules", "*", "matches", "*"];

interface PatternPlace {
  /** Path to the object that holds `type` and the pattern. */
  readonly holder: readonly string[];
  readonly field: string;
}

const PLACES: Readonly<Record<string, readonly PatternPlace[]>> = {
  "gateway.networking.k8s.io/HTTPRoute": [
    { holder: [...MATCH, "path"], field: "value" },
    { holder: [...MATCH, "headers", "*"], field: "value" },
    { holder: [...MATCH, "queryParams", "*"], field: "value" },
  ],
  "gateway.networking.k8s.io/GRPCRoute": [
    { holder: [...MATCH, "method"], field: "service" },
    { holder: [...MATCH, "method"], field: "method" },
    { holder: [...MATCH, "headers", "*"], field: "value" },
  ],
};

/** @param groupKind group and kind such as "gateway.networking.k8s.io/HTTPRoute" */
export function* patternViolations(groupKind: string, object: unknown): Generator<Violation> {
  for (const { holder, field } of PLACES[groupKind] ?? []) {
    for (const { path, value } of valuesAt(object, holder)) {
      const text = memberOf(value, field);
      if (typeof text === "string" && memberOf(value, "type") === "RegularExpression")
        yield* checkPattern(childPath(path, field), text);
    }
  }
}

const sound = new ValidatedTextCache(8_192);

/** @returns nothing when the text is a regular expression that may be used */
export function checkPattern(path: string, text: string): readonly Violation[] {
  return sound.check("regex", text, () => compileViolations(path, text));
}

function compileViolations(path: string, text: string): Violation[] {
  const reason = reasonOf(text);
  return reason === undefined ? [] : [violation(path, "FieldValueInvalid", `Invalid value: ${print(text)}: ${reason}`)];
}
