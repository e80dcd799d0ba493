/**
 * Finds the position of a field in the text of a document; parse.ts uses it. Paths have the form of the API server
 * ("spec.rules[0].name"). A path that is not in the text leads to its nearest ancestor.
 */
import { type Document, type LineCounter, type Pair, isAlias, isCollection, isMap, isPair, isScalar } from "yaml";

export interface SourceLocation {
  /** Line and column both start at 1. */
  readonly line: number;
  readonly column: number;
}

/** Offsets into the text of the file; `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Result of one step into a document: the node, and the span of the key in front of it. */
interface Found {
  readonly node: unknown;
  readonly key: Span | undefined;
}

/** Splits "spec.rules[0].name" into ["spec", "rules", "0", "name"]. */
export function splitPath(path: string): string[] {
  return path.split(/[.[\]]+/).filter((part) => part !== "");
}

/** Returns the position of the key of a field, or of the item of a list. */
export function locationOf(document: Document.Parsed, path: readonly string[], lines: LineCounter): SourceLocation {
  const { found } = follow(document, path);
  return locationAt(lines, found.key?.start ?? rangeOf(found.node)?.start ?? 0);
}

/**
 * Returns the span of the value when it is written on the line of its key. Otherwise, and for missing fields, returns
 * the key.
 */
export function valueSpan(document: Document.Parsed, path: readonly string[]): Span {
  const { found, isWhole } = follow(document, path);
  const { node, key } = found;
  const value = rangeOf(node);
  const isInline =
    isAlias(node) || (isScalar(node) && node.source !== "") || (isCollection(node) && node.flow === true);
  if (value !== undefined && isWhole && isInline) return value;
  return key ?? firstKeyOf(node) ?? value ?? { start: 0, end: 0 };
}

/** Returns the span of the key of a field, without its value. */
export function keySpan(document: Document.Parsed, path: readonly string[]): Span {
  return follow(document, path).found.key ?? valueSpan(document, path);
}

/**
 * Yields the spans of all values at the paths that a pattern names; "*" matches each item or value. When the document
 * ends before the pattern does, the last value counts as a whole, so that a secret in an unexpected place is covered
 * too.
 */
export function* spansAt(document: Document.Parsed, node: unknown, pattern: readonly string[]): Generator<Span> {
  const [step, ...rest] = pattern;
  if (isAlias(node)) {
    const own = rangeOf(node);
    if (own !== undefined) yield own;
    yield* spansAt(document, node.resolve(document), pattern);
    return;
  }
  if (step === undefined || !isCollection(node)) {
    const own = rangeOf(node);
    if (own !== undefined) yield own;
    return;
  }
  for (const [at, item] of node.items.entries()) {
    const name = isPair(item) ? (isScalar(item.key) ? String(item.key.value) : "") : String(at);
    if (step === "*" || step === name || name === "<<") {
      yield* spansAt(document, isPair(item) ? item.value : item, name === "<<" ? pattern : rest);
    }
  }
}

/** Returns the node at a path, or the nearest ancestor when the path is not completely in the text. */
export function nodeAt(document: Document.Parsed, path: readonly string[]): unknown {
  return follow(document, path).found.node;
}

export function locationAt(lines: LineCounter, offset: number): SourceLocation {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

function follow(
  document: Document.Parsed,
  path: readonly string[],
): { readonly found: Found; readonly isWhole: boolean } {
  let found: Found = { node: document.contents, key: undefined };
  for (let at = 0; at < path.length;) {
    const node = isAlias(found.node) ? found.node.resolve(document) : found.node;
    if (!isCollection(node)) return { found, isWhole: false };
    const step = isMap(node)
      ? memberOf(node.items, path, at)
      : { found: { node: node.items[Number(path[at])], key: undefined }, taken: 1 };
    if (step === undefined || step.found.node === undefined) return { found, isWhole: false };
    found = step.found;
    at += step.taken;
  }
  return { found, isWhole: true };
}

/**
 * Finds the member for the next parts of a path. Keys may contain dots themselves (annotations), so the longest run of
 * parts that is a key wins.
 */
function memberOf(
  items: readonly unknown[],
  path: readonly string[],
  at: number,
): { readonly found: Found; readonly taken: number } | undefined {
  const pairs = pairsOf(items);
  for (let end = path.length; end > at; end--) {
    const pair = pairs.get(path.slice(at, end).join("."));
    if (pair === undefined) continue;
    return { found: { node: pair.value ?? pair.key, key: rangeOf(pair.key) }, taken: end - at };
  }
  return undefined;
}

/** Index of keys, built once for each map that is searched: a map of thousands of keys may have a hundred errors. */
const pairsOfItems = new WeakMap<readonly unknown[], ReadonlyMap<string, Pair>>();

function pairsOf(items: readonly unknown[]): ReadonlyMap<string, Pair> {
  const known = pairsOfItems.get(items);
  if (known !== undefined) return known;
  const pairs = new Map<string, Pair>();
  for (const pair of items) {
    if (!isPair(pair) || !isScalar(pair.key)) continue;
    const name = String(pair.key.value);
    if (!pairs.has(name)) pairs.set(name, pair);
  }
  pairsOfItems.set(items, pairs);
  return pairs;
}

function firstKeyOf(node: unknown): Span | undefined {
  if (!isMap(node)) return undefined;
  const [first] = node.items;
  return isPair(first) ? rangeOf(first.key) : undefined;
}

function rangeOf(node: unknown): Span | undefined {
  if (!isCollection(node) && !isScalar(node) && !isAlias(node)) return undefined;
  const { range } = node;
  return range === undefined || range === null ? undefined : { start: range[0], end: range[1] };
}
