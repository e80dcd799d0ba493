/**
 * Manifest text → objects with places. YAML 1.1 as kubectl reads it: `on` is true, `010` is eight, and neither dates nor
 * base-sixty numbers exist. A document that cannot be read names its place; the others of the file are still there.
 */
import {
  type Document,
  LineCounter,
  type Tags,
  isCollection,
  isPair,
  isAlias,
  isMap,
  isScalar,
  parseAllDocuments,
} from "yaml";
import { messageOf } from "../../lib/errors.ts";
import { faultOfShape } from "./json-shape.ts";

export interface Place {
  readonly line: number;
  readonly column: number;
}

export interface ParsedObject {
  readonly value: Readonly<Record<string, unknown>>;
  /** Where a field path such as "spec.rules[0].name" stands, or the nearest ancestor that is written down. */
  readonly locate: (path: string) => Place;
}

export interface ParseFault extends Place {
  readonly message: string;
}

export interface ParsedFile {
  readonly objects: readonly ParsedObject[];
  /** Objects inside broken documents, as far as they can be read: never to be served, but known to exist. */
  readonly fragments: readonly ParsedObject[];
  readonly faults: readonly ParseFault[];
}

/** What YAML 1.1 would read as something else than kubectl does. */
const FOREIGN_TAGS = new Set([
  "tag:yaml.org,2002:timestamp",
  "tag:yaml.org,2002:set",
  "tag:yaml.org,2002:omap",
  "tag:yaml.org,2002:pairs",
]);
const MAX_ALIASES = 100;

export function parseManifest(text: string): ParsedFile {
  const lines = new LineCounter();
  const parsed: { objects: ParsedObject[]; fragments: ParsedObject[]; faults: ParseFault[] } = {
    objects: [],
    fragments: [],
    faults: [],
  };
  const documents = parseDocuments(text, lines, parsed.faults);
  for (const document of documents) {
    const fault = faultOf(document, lines);
    if (fault !== undefined) parsed.faults.push(fault);
    const value = fault === undefined || document.errors.length > 0 ? valueOf(document, lines) : undefined;
    if (value === undefined) continue;
    if ("message" in value) {
      if (fault === undefined) parsed.faults.push(value);
      continue;
    }
    const target = fault === undefined ? parsed.objects : parsed.fragments;
    for (const { object, prefix } of expandList(value.plain)) {
      target.push({ value: object, locate: (path) => locate(document, [...prefix, ...splitPath(path)], lines) });
    }
  }
  return parsed;
}

function parseDocuments(text: string, lineCounter: LineCounter, faults: ParseFault[]): Document.Parsed[] {
  try {
    return parseAllDocuments(text, {
      version: "1.1",
      strict: true,
      uniqueKeys: true,
      // Excerpts could carry a secret's value into a log.
      prettyErrors: false,
      lineCounter,
      customTags: kubectlTags,
    }) as Document.Parsed[];
  } catch (error) {
    // The composer recurses: text nested thousands deep ends here and not in the process.
    faults.push({ line: 1, column: 1, message: wordsOf(error) });
    return [];
  }
}

function kubectlTags(tags: Tags): Tags {
  return tags.filter((tag) => {
    if (typeof tag !== "object") return !["timestamp", "set", "omap", "pairs", "intTime", "floatTime"].includes(tag);
    return !FOREIGN_TAGS.has(tag.tag) && !("format" in tag && tag.format === "TIME");
  });
}

function faultOf(document: Document.Parsed, lines: LineCounter): ParseFault | undefined {
  const error = document.errors[0];
  return error === undefined ? undefined : { ...placeAt(lines, error.pos[0]), message: wordsOf(error) };
}

function valueOf(
  document: Document.Parsed,
  lines: LineCounter,
): { plain: Record<string, unknown> } | ParseFault | undefined {
  if (document.contents === null) return undefined;
  const start = placeAt(lines, document.contents.range[0]);
  try {
    const plain: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    if (plain === null) return undefined;
    const fault = faultOfShape(plain);
    if (fault !== undefined) return { ...start, message: fault };
    if (typeof plain !== "object" || Array.isArray(plain))
      return { ...start, message: "not an object: a manifest starts with apiVersion and kind" };
    // The shape was just checked: a plain object, since YAML mappings become those.
    return { plain: plain as Record<string, unknown> };
  } catch (error) {
    return { ...start, message: wordsOf(error) };
  }
}

/** A parser that runs out of stack says so in its own error or in the engine's. */
function wordsOf(error: unknown): string {
  const message = messageOf(error);
  return error instanceof RangeError || message.startsWith("Maximum call stack") ? "nested too deeply" : message;
}

interface Expanded {
  readonly object: Readonly<Record<string, unknown>>;
  readonly prefix: readonly string[];
}

/** `kind: List`, and typed lists, whose items may leave out what the list says. */
function expandList(value: Record<string, unknown>): Expanded[] {
  const { kind, items, apiVersion } = value;
  if (typeof kind !== "string" || !kind.endsWith("List") || !Array.isArray(items))
    return [{ object: value, prefix: [] }];
  const typed = kind === "List" ? {} : { apiVersion, kind: kind.slice(0, -"List".length) };
  return items.flatMap((item: unknown, at): Expanded[] => {
    const prefix = ["items", String(at)];
    if (typeof item !== "object" || item === null || Array.isArray(item)) return [{ object: {}, prefix }];
    return [{ object: { ...typed, ...item }, prefix }];
  });
}

/** "spec.rules[0].name" → ["spec", "rules", "0", "name"] */
function splitPath(path: string): string[] {
  return path.split(/[.[\]]+/).filter((part) => part !== "");
}

function locate(document: Document.Parsed, path: readonly string[], lines: LineCounter): Place {
  let node: unknown = document.contents;
  let offset = document.contents?.range[0] ?? 0;
  for (let at = 0; at < path.length;) {
    if (isAlias(node)) node = node.resolve(document);
    if (!isCollection(node)) break;
    const step = isMap(node)
      ? memberOf(node.items, path, at)
      : { value: node.items[Number(path[at])], taken: 1, start: undefined };
    if (step === undefined || step.value === undefined) break;
    offset = step.start ?? rangeStart(step.value) ?? offset;
    node = step.value;
    at += step.taken;
  }
  return placeAt(lines, offset);
}

/** Keys may hold dots themselves (annotations): the longest run of parts that is a key wins. */
function memberOf(
  items: readonly unknown[],
  path: readonly string[],
  at: number,
): { value: unknown; taken: number; start: number | undefined } | undefined {
  for (let end = path.length; end > at; end--) {
    const name = path.slice(at, end).join(".");
    for (const pair of items) {
      if (!isPair(pair) || !isScalar(pair.key) || String(pair.key.value) !== name) continue;
      return { value: pair.value ?? pair.key, taken: end - at, start: pair.key.range?.[0] };
    }
  }
  return undefined;
}

function rangeStart(node: unknown): number | undefined {
  return isCollection(node) || isScalar(node) || isAlias(node) ? node.range?.[0] : undefined;
}

function placeAt(lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}
