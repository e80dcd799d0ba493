/**
 * Where a field stands in the text of a document. Paths are those of the API server ("spec.rules[0].name"); a path that
 * is not written down leads to its nearest ancestor.
 */
import { type Document, type LineCounter, type Pair, isAlias, isCollection, isMap, isPair, isScalar } from "yaml";

export interface SourceLocation {
  /** Both start at 1. */
  readonly line: number;
  readonly column: number;
}

/** Offsets into the text of the file; `end` is not part of it. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** One step into a document: what is there, and the key that it stands behind. */
interface Found {
  readonly node: unknown;
  readonly key: Span | undefined;
}

/** "spec.rules[0].name" → ["spec", "rules", "0", "name"] */
export function splitPath(path: string): string[] {
  return path.split(/[.[\]]+/).filter((part) => part !== "");
}

/** The key of a field, or the item of a list. */
export function locationOf(document: Document.Parsed, path: readonly string[], lines: LineCounter): SourceLocation {
  const { found } = follow(document, path);
  return locationAt(lines, found.key?.start ?? rangeOf(found.node)?.start ?? 0);
}

/** The value itself where it is written on the line of its key; otherwise, and for what is missing, the key. */
export function valueSpan(document: Document.Parsed, path: readonly string[]): Span {
  const { found, isWhole } = follow(document, path);
  const { node, key } = found;
  const value = rangeOf(node);
  const isInline =
    isAlias(node) || (isScalar(node) && node.source !== "") || (isCollection(node) && node.flow === true);
  if (value !== undefined && isWhole && isInline) return value;
  return key ?? firstKeyOf(node) ?? value ?? { start: 0, end: 0 };
}

/** The key of a field with nothing of its value. */
export function keySpan(document: Document.Parsed, path: readonly string[]): Span {
  return follow(document, path).found.key ?? valueSpan(document, path);
}

/** All of what is written at the paths that a pattern names; "*" is each item or value. What stops short counts whole. */
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

/** The node at a path, whether or not all of the path is written down. */
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

/** Keys may hold dots themselves (annotations): the longest run of parts that is a key wins. */
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

/** By key, made once for each map that is looked into: a map of thousands may have a hundred faults. */
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
