/**
 * Precedence among matching rules, as the Gateway API orders them (HTTPRouteRule.matches): exact path, then prefixes
 * and regular expressions by length, then method, number of headers, number of query parameters, age, name, and the
 * order in the route. `PathTable` keeps its lists sorted by it.
 */
import type { CompiledMatch } from "./match.ts";
import { compare } from "../../lib/compare.ts";

/** One match of one rule of one route. */
export interface Candidate<Rule> {
  readonly match: CompiledMatch;
  readonly createdAtMs: bigint;
  /** "namespace/name" of the route; breaks ties of age. */
  readonly routeName: string;
  readonly ruleIndex: number;
  readonly matchIndex: number;
  readonly rule: Rule;
}

/** @returns a negative number when `a` goes first */
export function comparePrecedence<Rule>(a: Candidate<Rule>, b: Candidate<Rule>): number {
  return (
    pathRank(b.match) - pathRank(a.match) ||
    b.match.path.text.length - a.match.path.text.length ||
    Number(b.match.method !== "") - Number(a.match.method !== "") ||
    b.match.headers.length - a.match.headers.length ||
    b.match.query.length - a.match.query.length ||
    compare(a.createdAtMs, b.createdAtMs) ||
    compare(a.routeName, b.routeName) ||
    a.ruleIndex - b.ruleIndex ||
    a.matchIndex - b.matchIndex
  );
}

function pathRank(match: CompiledMatch): number {
  return match.path.kind === "exact" ? 1 : 0;
}
