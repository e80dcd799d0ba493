/**
 * All candidates of one host, arranged so that a look-up costs the depth of a path and not the number of routes:
 * exact paths and prefixes by map, regular expressions in order, merged by rank.
 */
import { restMatches, type Routable } from "./match.ts";
import { comparePrecedence, type Candidate } from "./precedence.ts";

interface Ranked<Rule> {
  readonly rank: number;
  readonly candidate: Candidate<Rule>;
}

export class PathTable<Rule> {
  readonly #exact = new Map<string, Ranked<Rule>[]>();
  readonly #prefixes = new Map<string, Ranked<Rule>[]>();
  readonly #regexes: Ranked<Rule>[] = [];
  /** Segments of the longest prefix: a hostile path is never walked deeper. */
  #depth = 0;

  constructor(candidates: readonly Candidate<Rule>[]) {
    const sorted = [...candidates].sort(comparePrecedence);
    for (const [rank, candidate] of sorted.entries()) {
      const { kind, text } = candidate.match.path;
      if (kind === "regex") this.#regexes.push({ rank, candidate });
      else append(kind === "exact" ? this.#exact : this.#prefixes, text, { rank, candidate });
      if (kind === "prefix") this.#depth = Math.max(this.#depth, segments(text));
    }
  }

  /** @param path without the query */
  find(path: string, request: Routable): Candidate<Rule> | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined) {
      for (const { candidate } of exact) if (restMatches(candidate.match, request)) return candidate;
    }
    const prefix = this.#findPrefix(path, request);
    const regex = this.#regexes.length === 0 ? undefined : this.#findRegex(path, request, prefix?.rank ?? Infinity);
    return (regex ?? prefix)?.candidate;
  }

  #findPrefix(path: string, request: Routable): Ranked<Rule> | undefined {
    for (let end = deepest(path, this.#depth); end >= 0; end = end === 0 ? -1 : path.lastIndexOf("/", end - 1)) {
      const ranked = this.#prefixes.get(end === path.length ? path : path.slice(0, end));
      if (ranked === undefined) continue;
      for (const entry of ranked) if (restMatches(entry.candidate.match, request)) return entry;
    }
    return undefined;
  }

  #findRegex(path: string, request: Routable, before: number): Ranked<Rule> | undefined {
    for (const entry of this.#regexes) {
      if (entry.rank > before) return undefined;
      if (restMatches(entry.candidate.match, request) && entry.candidate.match.path.test(path)) return entry;
    }
    return undefined;
  }
}

function append<T>(map: Map<string, T[]>, key: string, value: T): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

function segments(prefix: string): number {
  let count = 0;
  for (let at = prefix.indexOf("/"); at >= 0; at = prefix.indexOf("/", at + 1)) count++;
  return count;
}

/** The end of the first `depth` segments. */
function deepest(path: string, depth: number): number {
  let at = 0;
  for (let count = 0; count <= depth; count++) {
    const next = path.indexOf("/", at);
    if (next < 0) return path.length;
    if (count === depth) return next;
    at = next + 1;
  }
  return path.length;
}
