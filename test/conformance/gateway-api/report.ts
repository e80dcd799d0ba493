/** Conformance reports, as upstream publishes them. */
import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";

/** Whether two reports say the same: the dates are left out, and the suite writes profiles in any order. */
export function sameResult(one: string, other: string): boolean {
  return isDeepStrictEqual(resultOf(one), resultOf(other));
}

function resultOf(report: string): unknown {
  // As upstream defines a report; an empty text is nothing at all.
  const { date: _, profiles, ...rest } = (parse(report) ?? {}) as { date?: string; profiles?: { name: string }[] };
  return { ...rest, profiles: profiles?.toSorted((one, other) => (one.name < other.name ? -1 : 1)) };
}
