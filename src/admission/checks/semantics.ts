/**
 * Checks what no rule of a CRD can check: expressions and patterns inside of texts, duplicate credentials, and names
 * that the gateway reserves. schema.ts hands it to the validator. The paths come from the schema; this file contains
 * only the checks.
 */
import { EXPRESSIONS } from "../../../generated/expressions.ts";
import { FORMATS } from "../../../generated/formats.ts";
import { RESERVED } from "../../../generated/reserved.ts";
import { absentValueViolations } from "./absent-values.ts";
import { credentialLocationViolations } from "./credential-locations.ts";
import { expressionViolations } from "./expressions.ts";
import { violation } from "../messages.ts";
import { childPath, textsAt, valuesAt } from "../paths.ts";
import { checkPattern, patternViolations } from "./patterns.ts";
import type { Violation } from "../violation.ts";

type Check = (object: unknown, pattern: readonly string[]) => Iterable<Violation>;

/** Checks by format of the schema. A format that its pattern describes completely needs no check. */
const CHECKS: Readonly<Record<string, Check>> = {
  regex: patternTextViolations,
  htpasswd: credentialViolations,
};

/**
 * Yields violations lazily, so that a caller with enough of them stops the checks.
 * @param groupKind group and kind such as "gwproxy.dev/GwPolicy"
 * @param object an object of the right shape
 */
export function* semanticViolations(groupKind: string, object: unknown): Generator<Violation> {
  const expressions = EXPRESSIONS[groupKind] ?? [];
  yield* expressionViolations(object, expressions);
  yield* absentValueViolations(object, expressions);
  for (const { path, format } of FORMATS[groupKind] ?? []) yield* CHECKS[format]?.(object, path) ?? [];
  for (const { path, names } of RESERVED[groupKind] ?? []) yield* reservedViolations(object, path, names);
  yield* credentialLocationViolations(groupKind, object);
  yield* patternViolations(groupKind, object);
}

function* patternTextViolations(object: unknown, pattern: readonly string[]): Generator<Violation> {
  for (const { path, text } of textsAt(object, pattern)) yield* checkPattern(path, text);
}

/**
 * Reports duplicate users: only one of two lines for a user could count, and which one would be arbitrary. The messages
 * never contain a line, since it is a credential.
 */
function* credentialViolations(object: unknown, pattern: readonly string[]): Generator<Violation> {
  for (const { path, value } of valuesAt(object, pattern.slice(0, -1))) {
    const seen = new Set<string>();
    for (const line of textsAt(value, ["*"], path)) {
      const colon = line.text.indexOf(":");
      const name = line.text.slice(0, colon);
      if (colon <= 0) {
        yield violation(line.path, "FieldValueInvalid", 'Invalid value: "***": must be a name, a colon and a hash');
      } else if (seen.has(name)) {
        const message = 'Duplicate value: "***": another line has the same name';
        yield violation(line.path, "FieldValueDuplicate", message, "keep one line for each name");
      }
      seen.add(name);
    }
  }
}

/** Yields warnings only, because the translator refuses reserved names and reports that in the status. */
function reservedViolations(object: unknown, pattern: readonly string[], names: readonly string[]): Violation[] {
  return valuesAt(object, pattern).flatMap(({ path, value }) =>
    names
      .filter((name) => typeof value === "object" && value !== null && Object.hasOwn(value, name))
      .map((name): Violation => {
        const message = `the gateway sets ${name} itself: a policy that sets it is not applied`;
        return { ...violation(childPath(path, name), "FieldValueForbidden", message), severity: "warning" };
      }),
  );
}
