/** Conformance reports, as upstream publishes them. */
import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";

/** Whether two reports say the same; the dates are left out. */
export function sameResult(one: string, other: string): boolean {
  return isDeepStrictEqual(withoutDate(one), withoutDate(other));
}

function withoutDate(report: string): unknown {
  const { date: _, ...rest } = (parse(report) ?? {}) as Record<string, unknown>; // a mapping, or nothing at all
  return rest;
}
