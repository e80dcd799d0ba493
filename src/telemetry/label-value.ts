/** Makes label values that clients choose printable and distinguishable. */

/** Replaces a missing value. */
export const UNKNOWN = "unknown";

/** Separates values in keys. */
export const SEPARATOR = "\u0000";

/** Replaces the separator, and an empty value by "unknown": Prometheus treats an empty label as absent. */
export function labelValue(value: string): string {
  return value === "" ? UNKNOWN : value.replaceAll(SEPARATOR, "\ufffd").toWellFormed();
}
