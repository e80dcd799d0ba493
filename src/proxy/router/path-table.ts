/**
 * Index of all rules of one host by path, used by `ListenerRouter`. A look-up costs the depth of the path and not the
 * number of routes: exact paths and prefixes are hash maps, and only regular expressions are tried one after the other.
 * A prefix look-up cuts the path at each "/" from the right, beginning at the depth of the longest prefix.
 *
 * Each list is sorted by precedence. Insertion and removal use binary search, so that a change of one route does not
 * sort all others again.
 */
import { restMatches, type Routable } from "./match.ts";
import { comparePrecedence, type Candidate } from "./precedence.ts";

/** Sorted by precedence. */
type Ordered<Rule> = Candidate<Rule>[];

export class PathTable<Rule> {
  readonly #exact = new Map<string, Ordered<Rule>>();
  readonly #prefixes = new Map<string, Ordered<Rule>>();
  readonly #regexes: Ordered<Rule> = [];
  /** Number of prefixes per count of segments; the last entry is never zero. */
  readonly #lengths: number[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(candidate: Candidate<Rule>): void {
    const { kind, text } = candidate.match.path;
    this.#size++;
    if (kind === "regex") insert(this.#regexes, candidate);
    else {
      const map = kind === "exact" ? this.#exact : this.#prefixes;
      const list = map.get(text);
      if (list === undefined) map.set(text, [candidate]);
      else insert(list, candidate);
    }
    if (kind !== "prefix") return;
    const length = segments(text);
    while (this.#lengths.length <= length) this.#lengths.push(0);
    this.#lengths[length] = (this.#lengths[length] ?? 0) + 1;
  }

  /** @param candidate must have been added */
  remove(candidate: Candidate<Rule>): void {
    const { kind, text } = candidate.match.path;
    this.#size--;
    if (kind === "regex") {
      take(this.#regexes, candidate);
      return;
    }
    const map = kind === "exact" ? this.#exact : this.#prefixes;
    const list = map.get(text) ?? [];
    take(list, candidate);
    if (list.length === 0) map.delete(text);
    if (kind !== "prefix") return;
    const length = segments(text);
    this.#lengths[length] = (this.#lengths[length] ?? 1) - 1;
    while (this.#lengths.at(-1) === 0) this.#lengths.pop();
  }

  /** @param path without the query */
  find(path: string, request: Routable): Candidate<Rule> | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined) {
      for (const candidate of exact) if (restMatches(candidate.match, request)) return candidate;
    }
    const prefix = this.#findPrefix(path, request);
    return this.#regexes.length === 0 ? prefix : (this.#findRegex(path, request, prefix) ?? prefix);
  }

  #findPrefix(path: string, request: Routable): Candidate<Rule> | undefined {
    // Start at the depth of the longest prefix, so that a hostile path with many segments costs no more than that.
    const depth = this.#lengths.length - 1;
    if (depth < 0) return undefined;
    for (let end = deepest(path, depth); end >= 0; end = end === 0 ? -1 : path.lastIndexOf("/", end - 1)) {
      const ordered = this.#prefixes.get(end === path.length ? path : path.slice(0, end));
      if (ordered === undefined) continue;
      for (const candidate of ordered) if (restMatches(candidate.match, request)) return candidate;
    }
    return undefined;
  }

  #findRegex(path: string, request: Routable, other: Candidate<Rule> | undefined): Candidate<Rule> | undefined {
    for (const candidate of this.#regexes) {
      if (other !== undefined && comparePrecedence(other, candidate) < 0) return undefined;
      if (restMatches(candidate.match, request) && candidate.match.path.test(path)) return candidate;
    }
    return undefined;
  }
}

function insert<Rule>(list: Ordered<Rule>, candidate: Candidate<Rule>): void {
  list.splice(insertionIndex(list, candidate), 0, candidate);
}

function take<Rule>(list: Ordered<Rule>, candidate: Candidate<Rule>): void {
  // Routes of two kinds can have the same name, so several candidates can have equal precedence.
  const at = list.lastIndexOf(candidate, insertionIndex(list, candidate) - 1);
  if (at < 0) throw new Error(`the table holds no such match of ${candidate.routeName}`);
  list.splice(at, 1);
}

/** Returns the index behind all candidates with the same or a higher precedence, by binary search. */
function insertionIndex<Rule>(list: Ordered<Rule>, candidate: Candidate<Rule>): number {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (comparePrecedence(list[middle] as Candidate<Rule>, candidate) <= 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

function segments(prefix: string): number {
  let count = 0;
  for (let at = prefix.indexOf("/"); at >= 0; at = prefix.indexOf("/", at + 1)) count++;
  return count;
}

/** Returns the end of the first `depth` segments. */
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
