/**
 * Refuses objects that are too big or too deep before any check walks them recursively. validator.ts uses it first. The
 * limits are far above every valid object: etcd takes 1.5 MiB, and no schema here nests deeper than 40.
 */
import type { Violation } from "../violation.ts";

export const MAX_DEPTH = 100;
const MAX_CHARACTERS = 2 * 1024 * 1024;
export const MAX_VALUES = 200_000;
/**
 * Limit of a member name, because names are part of the path of every violation below them. Names of labels and
 * annotations have at most 317 characters.
 */
const MAX_NAME = 4_096;

/** Walks iteratively and stops at the first limit that is exceeded. */
export function boundsViolation(root: unknown): Violation | undefined {
  const open: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }];
  let characters = 0;
  let values = 1;
  while (open.length > 0) {
    // The cast holds because the loop runs only while the stack is not empty.
    const { value, depth } = open.pop() as { value: unknown; depth: number };
    if (typeof value === "string") characters += value.length;
    if (characters > MAX_CHARACTERS) return tooLong(`may not be more than ${MAX_CHARACTERS} bytes`);
    if (typeof value !== "object" || value === null) continue;
    if (depth >= MAX_DEPTH) return tooLong(`may not be nested deeper than ${MAX_DEPTH} levels`);
    for (const key of Object.keys(value)) {
      if (!Array.isArray(value)) characters += key.length;
      if (key.length > MAX_NAME) return tooLong(`a name may not be more than ${MAX_NAME} bytes`);
      if (++values > MAX_VALUES) return tooLong(`may not hold more than ${MAX_VALUES} values`);
      // Arrays and plain objects can both be indexed by their own keys.
      open.push({ value: (value as Record<string, unknown>)[key], depth: depth + 1 });
    }
  }
  return undefined;
}

function tooLong(detail: string): Violation {
  return { path: "", severity: "error", reason: "FieldValueTooLong", message: `Too long: ${detail}`, suggestion: "" };
}
