/**
 * What no rule of a CRD can see: expressions and patterns inside texts, credentials that repeat each other, names that
 * the gateway keeps for itself. The places come from the schema; only what is checked there is written here.
 */
import { EXPRESSIONS } from "../../generated/expressions.ts";
import { FORMATS } from "../../generated/formats.ts";
import { RESERVED } from "../../generated/reserved.ts";
import { expressionViolations } from "./expressions.ts";
import { violation } from "./messages.ts";
import { childPath, textsAt, valuesAt } from "./paths.ts";
import { patternFault, patternViolations } from "./patterns.ts";
import type { Violation } from "./violation.ts";

type Check = (object: unknown, pattern: readonly string[]) => Violation[];

/** By format of the schema. A format that its pattern describes in full needs no check. */
const CHECKS: Readonly<Record<string, Check>> = {
  regex: (object, pattern) => textsAt(object, pattern).flatMap(({ path, text }) => patternFault(path, text)),
  htpasswd: credentialViolations,
};

/** @param groupKind "gwproxy.dev/GwPolicy" @param object of the right shape */
export function meaningViolations(groupKind: string, object: unknown): Violation[] {
  return [
    ...expressionViolations(object, EXPRESSIONS[groupKind] ?? []),
    ...(FORMATS[groupKind] ?? []).flatMap(({ path, format }) => CHECKS[format]?.(object, path) ?? []),
    ...(RESERVED[groupKind] ?? []).flatMap(({ path, names }) => reservedViolations(object, path, names)),
    ...patternViolations(groupKind, object),
  ];
}

/** Of two lines for one user only one could count, and which one is a matter of luck. Lines are never repeated here. */
function credentialViolations(object: unknown, pattern: readonly string[]): Violation[] {
  return valuesAt(object, pattern.slice(0, -1)).flatMap(({ path, value }) => {
    const seen = new Set<string>();
    return textsAt(value, ["*"], path).flatMap((line) => {
      const colon = line.text.indexOf(":");
      const name = line.text.slice(0, colon);
      if (colon <= 0) {
        return [violation(line.path, "FieldValueInvalid", 'Invalid value: "***": must be a name, a colon and a hash')];
      }
      if (!seen.has(name)) {
        seen.add(name);
        return [];
      }
      const message = 'Duplicate value: "***": another line has the same name';
      return [violation(line.path, "FieldValueDuplicate", message, "keep one line for each name")];
    });
  });
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
