/**
 * Manifest text → objects with places. YAML 1.1 as kubectl reads it: `on` is true, `010` is eight, and neither dates nor
 * base-sixty numbers exist. A document that cannot be read names its place; the others of the file are still there.
 */
import { type Document, LineCounter, type Tags, parseAllDocuments } from "yaml";
import { SECRETS } from "../../../generated/secrets.ts";
import { messageOf } from "../../lib/errors.ts";
import { type Excerpt, excerptOf, excerptOfBroken } from "./excerpt.ts";
import { faultOfShape } from "./json-shape.ts";
import { type Place, keySpan, nodeAt, placeAt, placeOf, spansAt, splitPath, valueSpan } from "./places.ts";

/** A place with its line. */
export interface Mark extends Place {
  readonly excerpt: Excerpt | undefined;
}

export interface ParsedObject {
  readonly value: Readonly<Record<string, unknown>>;
  /** Where a field path such as "spec.rules[0].name" stands, or the nearest ancestor that is written down. */
  readonly locate: (path: string) => Place;
  /** The same for a fault: the value that is wrong, or the name that is; with the line, secrets masked. */
  readonly mark: (path: string, about: "value" | "name") => Mark;
}

export interface ParseFault extends Mark {
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
const MAX_FAULTS = 20;

export function parseManifest(text: string): ParsedFile {
  const lines = new LineCounter();
  const parsed: { objects: ParsedObject[]; fragments: ParsedObject[]; faults: ParseFault[] } = {
    objects: [],
    fragments: [],
    faults: [],
  };
  const documents = parseDocuments(text, lines, parsed.faults);
  const syntax = new Syntax(text, { documents, lines });
  for (const [at, document] of documents.entries()) {
    const faults = faultsOf(document, text, lines);
    parsed.faults.push(...faults);
    const value = valueOf(document, text, lines);
    if (value === undefined) continue;
    if ("message" in value) {
      if (faults.length === 0) parsed.faults.push(value);
      continue;
    }
    const target = faults.length === 0 ? parsed.objects : parsed.fragments;
    for (const { object, prefix } of expandList(value.plain)) {
      target.push({
        value: object,
        locate: (path) => syntax.locate(at, [...prefix, ...splitPath(path)]),
        mark: (path, about) => markOf(syntax.of(at), { object, prefix }, splitPath(path), about),
      });
    }
  }
  return parsed;
}

interface Parsed {
  readonly documents: readonly Document.Parsed[];
  readonly lines: LineCounter;
}

/**
 * The documents of a text with their places. They take many times the memory of what they say and are asked for where
 * something is wrong: so they may go, and are parsed again when they are missed.
 */
class Syntax {
  readonly #text: string;
  #parsed: WeakRef<Parsed>;

  constructor(text: string, parsed: Parsed) {
    this.#text = text;
    this.#parsed = new WeakRef(parsed);
  }

  /** @param at place of the document in the text */
  of(at: number): Text {
    const { documents, lines } = this.#get();
    const document = documents[at];
    if (document === undefined) throw new RangeError(`the text has no document ${at}`);
    return { document, text: this.#text, lines };
  }

  locate(at: number, path: readonly string[]): Place {
    const { document, lines } = this.of(at);
    return placeOf(document, path, lines);
  }

  #get(): Parsed {
    const kept = this.#parsed.deref();
    if (kept !== undefined) return kept;
    const lines = new LineCounter();
    const parsed = { documents: parseDocuments(this.#text, lines, []), lines };
    this.#parsed = new WeakRef(parsed);
    return parsed;
  }
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
    faults.push({ line: 1, column: 1, excerpt: undefined, message: wordsOf(error) });
    return [];
  }
}

function kubectlTags(tags: Tags): Tags {
  return tags.filter((tag) => {
    if (typeof tag !== "object") return !["timestamp", "set", "omap", "pairs", "intTime", "floatTime"].includes(tag);
    return !FOREIGN_TAGS.has(tag.tag) && !("format" in tag && tag.format === "TIME");
  });
}

/** The first fault of the syntax, since the parser guesses after it, and every repeated key. */
function faultsOf(document: Document.Parsed, text: string, lines: LineCounter): ParseFault[] {
  const [first, ...more] = document.errors;
  if (first === undefined) return [];
  const kept = [first, ...more.filter(({ code }) => code === "DUPLICATE_KEY")].slice(0, MAX_FAULTS);
  return kept.map((error) => {
    const [start, end] = error.pos;
    const excerpt = excerptOfBroken(text, { start, end });
    return { ...placeAt(lines, start), excerpt, message: wordsOf(error) };
  });
}

function valueOf(
  document: Document.Parsed,
  text: string,
  lines: LineCounter,
): { plain: Record<string, unknown> } | ParseFault | undefined {
  if (document.contents === null) return undefined;
  const [offset] = document.contents.range;
  // Only for a fault: an excerpt looks through the whole text, which may hold thousands of documents.
  const fault = (message: string): ParseFault => ({
    ...placeAt(lines, offset),
    excerpt: excerptOfBroken(text, { start: offset, end: offset }),
    message,
  });
  try {
    const plain: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    if (plain === null) return undefined;
    const shape = faultOfShape(plain);
    if (shape !== undefined) return fault(shape);
    if (typeof plain !== "object" || Array.isArray(plain))
      return fault("not an object: a manifest starts with apiVersion and kind");
    // The shape was just checked: a plain object, since YAML mappings become those.
    return { plain: plain as Record<string, unknown> };
  } catch (error) {
    return fault(wordsOf(error));
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

interface Text {
  readonly document: Document.Parsed;
  readonly text: string;
  readonly lines: LineCounter;
}

function markOf(
  { document, text, lines }: Text,
  { object, prefix }: Expanded,
  path: readonly string[],
  about: "value" | "name",
): Mark {
  const at = [...prefix, ...path];
  const root = nodeAt(document, prefix);
  const secrets = secretsOf(object).flatMap((pattern) => [...spansAt(document, root, pattern)]);
  // Nobody knows what a field is that does not exist: what stands in it may be a secret under a wrong name.
  if (about === "name") secrets.push(...spansAt(document, nodeAt(document, at), []));
  const span = about === "name" ? keySpan(document, at) : valueSpan(document, at);
  return { ...placeAt(lines, span.start), excerpt: excerptOf(text, span, secrets) };
}

const LAST_APPLIED = ["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"];

/** Paths of values that no message may show. Of a Secret that is everything that does not name it. */
function secretsOf(object: Readonly<Record<string, unknown>>): (readonly string[])[] {
  const { apiVersion, kind } = object;
  if (kind === "Secret") {
    const open = ["apiVersion", "kind", "metadata", "type", "immutable"];
    return [LAST_APPLIED, ...Object.keys(object).flatMap((name) => (open.includes(name) ? [] : [[name]]))];
  }
  if (typeof apiVersion !== "string" || typeof kind !== "string") return [[]];
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  return [LAST_APPLIED, ...(SECRETS[`${group}/${kind}`] ?? [])];
}
