/**
 * What an object says and this version does not enforce. Translators get a view that notes what they read: a field that
 * none of them looked at is not served, by construction, and never ignored in silence. Where such a field protects
 * something (`x-gw-protects` in the schemas), the caller closes what the object governs.
 */
import { PROTECTIONS } from "../../generated/protections.ts";
import type { Step } from "../lib/unread.ts";

export interface UnservedField {
  /** Field path such as "spec.traffic.retry". */
  readonly path: string;
  readonly message: string;
  /** Without it something would be open that the user meant to close. */
  readonly protects: boolean;
}

/**
 * @param groupKind "gwproxy.dev/GwPolicy"
 * @param unread paths from the root of the object that no translator read
 * @param faults field paths of problems that were reported: each accounts for all that lies below it
 */
export function unservedFields(
  groupKind: string,
  unread: readonly (readonly Step[])[],
  faults: readonly string[],
): UnservedField[] {
  return unread.flatMap((steps) => {
    const path = pathOf(steps);
    if (faults.some((fault) => lies(path, fault))) return [];
    const protects = (PROTECTIONS[groupKind] ?? []).some((pattern) => meets(steps, pattern));
    const message = "this version of gwproxy does not enforce it";
    return [{ path, protects, message: protects ? `${message}; what it would protect is closed` : message }];
  });
}

function pathOf(steps: readonly Step[]): string {
  return steps.reduce<string>(
    (path, step) => (typeof step === "number" ? `${path}[${step}]` : path === "" ? step : `${path}.${step}`),
    "",
  );
}

function lies(path: string, fault: string): boolean {
  return path === fault || path.startsWith(`${fault}.`) || path.startsWith(`${fault}[`);
}

/** One is the beginning of the other: the field is part of what protects, or holds it. */
function meets(steps: readonly Step[], pattern: readonly string[]): boolean {
  return steps.every((step, at) => at >= pattern.length || pattern[at] === "*" || pattern[at] === step);
}
