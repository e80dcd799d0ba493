/**
 * Manifest text → objects with places. YAML 1.1 as kubectl reads it: `on` is true, `010` is eight, and neither dates nor
 * base-sixty numbers exist. A document that cannot be read names its place; the others of the file are still there.
 */
import type { Document, LineCounter } from "yaml";
import { SECRETS } from "../../../generated/secrets.ts";
import { runAtOnce } from "../../lib/slices.ts";
import { type Composition, type SyntaxFault, composeDocuments, wordsOf } from "./documents.ts";
import { type Excerpt, excerptOf, mayHoldSecrets } from "./excerpt.ts";
import { faultOfShape } from "./json-shape.ts";
import { spanInScalar } from "./scalar-offset.ts";
import {
  type SourceLocation,
  type Span,
  keySpan,
  nodeAt,
  locationAt,
  locationOf,
  spansAt,
  splitPath,
  valueSpan,
} from "./source-locations.ts";

/** A place with its line. */
export interface Mark extends SourceLocation {
  readonly excerpt: Excerpt | undefined;
}

/** @param offset of the fault in the text that is the value, where only a part of it is wrong */
export type MarkFault = (path: string, about: "value" | "name", offset?: number) => Mark;

export interface ParsedObject {
  readonly value: Readonly<Record<string, unknown>>;
  /** Where a field path such as "spec.rules[0].name" stands, or the nearest ancestor that is written down. */
  readonly locate: (path: string) => SourceLocation;
  /** The same for a fault: the value that is wrong, or the name that is; with the line, secrets masked. */
  readonly mark: MarkFault;
}

interface ParseFault extends Mark {
  readonly message: string;
}

export interface ParsedFile {
  readonly objects: readonly ParsedObject[];
  /** Objects inside broken documents, as far as they can be read: never to be served, but known to exist. */
  readonly fragments: readonly ParsedObject[];
  readonly faults: readonly ParseFault[];
}

const MAX_ALIASES = 100;
/** Objects of one file. */
const MAX_OBJECTS = 10_000;
/** Faults of the text that are told of one file. */
const MAX_FAULTS = 1_000;

export function parseManifest(text: string): ParsedFile {
  return runAtOnce(parseManifestInSteps(text));
}

/** Yields between pieces of work. */
export function* parseManifestInSteps(text: string): Generator<undefined, ParsedFile> {
  const composition = yield* composeDocuments(text);
  const objects: ParsedObject[] = [];
  const fragments: ParsedObject[] = [];
  const faults: ParseFault[] = [];
  const marker = new FaultMarker(text, composition.lines);
  const syntax = new Syntax(text, composition);
  for (const [at, composed] of composition.documents.entries()) {
    yield;
    faults.push(...composed.faults.map((fault) => marker.mark(fault)));
    if (objects.length > MAX_OBJECTS || faults.length > MAX_FAULTS) break;
    const value = composed.isReadable ? valueOf(composed.document) : undefined;
    if (value === undefined) continue;
    if ("message" in value) {
      if (composed.faults.length === 0) faults.push(marker.mark(value));
      continue;
    }
    const target = composed.faults.length === 0 ? objects : fragments;
    for (const item of expandList(value.plain)) target.push(placedObject(syntax, at, item));
  }
  if (composition.fault !== undefined) faults.push(marker.mark(composition.fault));
  if (objects.length <= MAX_OBJECTS) return { objects, fragments, faults };
  // Some of them would be as wrong as all: the file keeps what it said before.
  const message = `more than ${MAX_OBJECTS} objects in one file: put them into several files`;
  return { objects: [], fragments: [], faults: [marker.mark({ offset: 0, end: 0, message })] };
}

function placedObject(syntax: Syntax, at: number, { object, prefix }: Expanded): ParsedObject {
  // The same for every fault of the object. Offsets only, so that the syntax tree may go.
  let secrets: readonly Span[] | undefined;
  return {
    value: object,
    locate: (path) => syntax.locate(at, [...prefix, ...splitPath(path)]),
    mark: (path, about, offset) => {
      const text = syntax.of(at);
      secrets ??= secretSpans(text, { object, prefix });
      return markOf(text, secrets, { path: [...prefix, ...splitPath(path)], about, offset });
    },
  };
}

/** Places of faults in the text. Whether any line may be shown is found out once. */
class FaultMarker {
  readonly #text: string;
  readonly #lines: LineCounter;
  #isShown: boolean | undefined;

  constructor(text: string, lines: LineCounter) {
    this.#text = text;
    this.#lines = lines;
  }

  mark({ offset, end, message }: SyntaxFault): ParseFault {
    this.#isShown ??= !mayHoldSecrets(this.#text);
    const excerpt = this.#isShown ? excerptOf(this.#text, { start: offset, end }, []) : undefined;
    return { ...locationAt(this.#lines, offset), excerpt, message };
  }
}

/**
 * The documents of a text with their places. They take many times the memory of what they say and are asked for where
 * something is wrong: so they may go, and are parsed again when they are missed.
 */
class Syntax {
  readonly #text: string;
  #parsed: WeakRef<Composition>;

  constructor(text: string, parsed: Composition) {
    this.#text = text;
    this.#parsed = new WeakRef(parsed);
  }

  /** @param at place of the document in the text */
  of(at: number): Text {
    const { documents, lines } = this.#get();
    const document = documents[at]?.document;
    if (document === undefined) throw new RangeError(`the text has no document ${at}`);
    return { document, text: this.#text, lines };
  }

  locate(at: number, path: readonly string[]): SourceLocation {
    const { document, lines } = this.of(at);
    return locationOf(document, path, lines);
  }

  #get(): Composition {
    const kept = this.#parsed.deref();
    if (kept !== undefined) return kept;
    const parsed = runAtOnce(composeDocuments(this.#text));
    this.#parsed = new WeakRef(parsed);
    return parsed;
  }
}

function valueOf(document: Document.Parsed): { plain: Record<string, unknown> } | SyntaxFault | undefined {
  if (document.contents === null) return undefined;
  const [offset] = document.contents.range;
  const fault = (message: string): SyntaxFault => ({ offset, end: offset, message });
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

function secretSpans({ document }: Text, { object, prefix }: Expanded): Span[] {
  const root = nodeAt(document, prefix);
  return secretsOf(object).flatMap((pattern) => [...spansAt(document, root, pattern)]);
}

interface Marked {
  readonly path: readonly string[];
  readonly about: "value" | "name";
  readonly offset: number | undefined;
}

function markOf({ document, text, lines }: Text, known: readonly Span[], { path, about, offset }: Marked): Mark {
  // Nobody knows what a field is that does not exist: what stands in it may be a secret under a wrong name.
  const secrets = about === "name" ? [...known, ...spansAt(document, nodeAt(document, path), [])] : known;
  const inner = offset === undefined ? undefined : spanInScalar(text, nodeAt(document, path), offset);
  const span = inner ?? (about === "name" ? keySpan(document, path) : valueSpan(document, path));
  return { ...locationAt(lines, span.start), excerpt: excerptOf(text, span, secrets) };
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
