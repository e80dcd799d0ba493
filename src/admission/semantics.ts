/**
 * What no rule of a CRD can see: expressions and patterns inside texts, credentials that repeat each other, names that
 * the gateway keeps for itself. The places come from the schema; only what is checked there is written here.
 */
import { EXPRESSIONS } from "../../generated/expressions.ts";
import { FORMATS } from "../../generated/formats.ts";
import { RESERVED } from "../../generated/reserved.ts";
import { absentValueViolations } from "./absent-values.ts";
import { expressionViolations } from "./expressions.ts";
import { violation } from "./messages.ts";
import { childPath, textsAt, valuesAt } from "./paths.ts";
import { patternFault, patternViolations } from "./patterns.ts";
import type { Violation } from "./violation.ts";

type Check = (object: unknown, pattern: readonly string[]) => Iterable<Violation>;

/** By format of the schema. A format that its pattern describes in full needs no check. */
const CHECKS: Readonly<Record<string, Check>> = {
  regex: patternTextViolations,
  htpasswd: credentialViolations,
};

/**
 * Each violation is looked for when it is taken: who has enough stops.
 * @param groupKind "gwproxy.dev/GwPolicy" @param object of the right shape
 */
export function* meaningViolations(groupKind: string, object: unknown): Generator<Violation> {
  const expressions = EXPRESSIONS[groupKind] ?? [];
  yield* expressionViolations(object, expressions);
  yield* absentValueViolations(object, expressions);
  for (const { path, format } of FORMATS[groupKind] ?? []) yield* CHECKS[format]?.(object, path) ?? [];
  for (const { path, names } of RESERVED[groupKind] ?? []) yield* reservedViolations(object, path, names);
  yield* patternViolations(groupKind, object);
}

function* patternTextViolations(object: unknown, pattern: readonly string[]): Generator<Violation> {
  for (const { path, text } of textsAt(object, pattern)) yield* patternFault(path, text);
}

/** Of two lines for one user only one could count, and which one is a matter of luck. Lines are never repeated here. */
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

/** A warning: translation refuses them, and says so in the status. */
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
