/** Values of labels that clients choose, as they can be printed and told apart. */

/** What stands for a value that nobody knows. */
export const UNKNOWN = "unknown";

/** Separates values in keys. */
export const SEPARATOR = "\u0000";

/** Without what separates values. Nothing would be no label at all, and so it is unknown. */
export function labelValue(value: string): string {
  return value === "" ? UNKNOWN : value.replaceAll(SEPARATOR, "\ufffd").toWellFormed();
}
