/**
 * Finds the fields that an object sets and this version does not enforce. GwPolicies and GwBackends use it.
 *
 * Translators get a view that tracks which fields they read (`src/lib/track-access.ts`). A field that no translator
 * read is unsupported by construction, so none is ever ignored silently. When such a field protects something
 * (`x-gw-fail-closed` in the schemas), the caller fails closed for whatever the object governs.
 */
import { FAIL_CLOSED_FIELDS } from "../../../generated/fail-closed-fields.ts";
import type { Step, UnreadMember } from "../../lib/track-access.ts";

export interface UnsupportedField {
  /** Field path such as "spec.traffic.retry". */
  readonly path: string;
  readonly message: string;
  /** Ignoring the field would leave something open that the user meant to close. */
  readonly failsClosed: boolean;
}

/**
 * @param groupKind kind of the object, such as "gwproxy.dev/GwPolicy"
 * @param unread fields of the whole object that no translator read
 * @param errors field paths of reported diagnostics; each accounts for every field below it
 */
export function unsupportedFields(
  groupKind: string,
  unread: readonly UnreadMember[],
  errors: readonly string[],
): UnsupportedField[] {
  return unread.flatMap(({ path: steps, value }) => {
    const path = pathOf(steps);
    if (errors.some((error) => lies(path, error))) return [];
    const failsClosed = (FAIL_CLOSED_FIELDS[groupKind] ?? []).some((pattern) => meets(steps, pattern, value));
    const message = "this version of gwproxy does not enforce it";
    return [{ path, failsClosed, message: failsClosed ? `${message}; what it would protect is closed` : message }];
  });
}

function pathOf(steps: readonly Step[]): string {
  return steps.reduce<string>(
    (path, step) => (typeof step === "number" ? `${path}[${step}]` : path === "" ? step : `${path}.${step}`),
    "",
  );
}

function lies(path: string, error: string): boolean {
  return path === error || path.startsWith(`${error}.`) || path.startsWith(`${error}[`);
}

/** Decides whether an unread field is part of a protecting field, or contains one in its value. */
function meets(steps: readonly Step[], pattern: readonly string[], value: unknown): boolean {
  const isOnTheWay = steps.every((step, at) => at >= pattern.length || pattern[at] === "*" || pattern[at] === step);
  return isOnTheWay && holds(value, pattern.slice(steps.length));
}

function holds(value: unknown, [step, ...rest]: readonly string[]): boolean {
  if (step === undefined) return value !== undefined;
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, child]) => (step === "*" || step === name) && holds(child, rest));
}
