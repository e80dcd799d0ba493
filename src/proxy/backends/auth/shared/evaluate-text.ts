/** Evaluates an expression of an `auth` block that has to give a text. */
import type { Expression } from "../../../../cel/expression.ts";
import { isGwError } from "../../../../lib/errors.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";

/** @returns undefined where it fails, gives another type, or there is no request; numbers and booleans are converted */
export function evaluateText(expression: Expression, caller: AuthCaller): string | undefined {
  const { root } = caller;
  if (root === undefined) return undefined;
  try {
    const value = expression.evaluate({ root: root.bind(caller) });
    if (typeof value === "string") return value;
    return typeof value === "number" || typeof value === "bigint" || typeof value === "boolean"
      ? String(value)
      : undefined;
  } catch (error) {
    if (isGwError(error)) return undefined;
    throw error;
  }
}
