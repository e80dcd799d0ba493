/**
 * Parses the text of a manifest into objects that know their positions. check.ts uses it. It reads YAML 1.1 as kubectl
 * does: `on` is true, `010` is eight, and there are neither dates nor base-sixty numbers. An unreadable document is
 * reported with its position, and the other documents of the file are still returned.
 */
import type { Document, LineCounter } from "yaml";
import { SECRETS } from "../../../generated/secrets.ts";
import { runAtOnce } from "../../lib/slices.ts";
import { type Composition, type YamlError, composeDocuments, wordsOf } from "./documents.ts";
import { type Excerpt, excerptOf, mayHoldSecrets } from "./excerpt.ts";
import { findShapeError } from "./json-shape.ts";
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

/** A position with its source line. */
export interface Mark extends SourceLocation {
  readonly excerpt: Excerpt | undefined;
}

/** @param offset position of the diagnostic within the text of the value, when only a part of it is wrong */
export type MakeMark = (path: string, about: "value" | "name", offset?: number) => Mark;

export interface ParsedObject {
  readonly value: Readonly<Record<string, unknown>>;
  /** Returns the position of a field path such as "spec.rules[0].name", or that of its nearest ancestor in the file. */
  readonly locate: (path: string) => SourceLocation;
  /**
   * Returns the position of a diagnostic, at the value or at the name of a field, and the line with its secrets masked.
   */
  readonly mark: MakeMark;
}

interface ManifestError extends Mark {
  readonly message: string;
}

export interface ParsedFile {
  readonly objects: readonly ParsedObject[];
  /**
   * Objects inside broken documents, as far as they can be read. They must never serve, but their existence matters.
   */
  readonly fragments: readonly ParsedObject[];
  readonly errors: readonly ManifestError[];
}

const MAX_ALIASES = 100;
/** Limit of objects per file. */
const MAX_OBJECTS = 10_000;
/** Limit of reported syntax errors per file. */
const MAX_ERRORS = 1_000;

export function parseManifest(text: string): ParsedFile {
  return runAtOnce(parseManifestInSteps(text));
}

/** Parses as a generator that yields between pieces of work. */
export function* parseManifestInSteps(text: string): Generator<undefined, ParsedFile> {
  const composition = yield* composeDocuments(text);
  const objects: ParsedObject[] = [];
  const fragments: ParsedObject[] = [];
  const errors: ManifestError[] = [];
  const marker = new Marker(text, composition.lines);
  const syntax = new Syntax(text, composition);
  for (const [at, composed] of composition.documents.entries()) {
    yield;
    errors.push(...composed.errors.map((error) => marker.mark(error)));
    if (objects.length > MAX_OBJECTS || errors.length > MAX_ERRORS) break;
    const value = composed.isReadable ? valueOf(composed.document) : undefined;
    if (value === undefined) continue;
    if ("message" in value) {
      if (composed.errors.length === 0) errors.push(marker.mark(value));
      continue;
    }
    const target = composed.errors.length === 0 ? objects : fragments;
    for (const item of expandList(value.plain)) target.push(placedObject(syntax, at, item));
  }
  if (composition.error !== undefined) errors.push(marker.mark(composition.error));
  if (objects.length <= MAX_OBJECTS) return { objects, fragments, errors };
  // Accepting only some of the objects would delete the others, so the file is refused and keeps its previous state.
  const message = `more than ${MAX_OBJECTS} objects in one file: put them into several files`;
  return { objects: [], fragments: [], errors: [marker.mark({ offset: 0, end: 0, message })] };
}

function placedObject(syntax: Syntax, at: number, { object, prefix }: Expanded): ParsedObject {
  // The spans are equal for every diagnostic of the object, so they are computed once. They are plain offsets, which lets
  // the syntax tree be garbage-collected.
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

/** Computes the positions of syntax errors. Whether lines may be shown is decided once per text. */
class Marker {
  readonly #text: string;
  readonly #lines: LineCounter;
  #isShown: boolean | undefined;

  constructor(text: string, lines: LineCounter) {
    this.#text = text;
    this.#lines = lines;
  }

  mark({ offset, end, message }: YamlError): ManifestError {
    this.#isShown ??= !mayHoldSecrets(this.#text);
    const excerpt = this.#isShown ? excerptOf(this.#text, { start: offset, end }, []) : undefined;
    return { ...locationAt(this.#lines, offset), excerpt, message };
  }
}

/**
 * The documents of a text, parsed again on demand. Syntax trees take many times the memory of their objects and are
 * only needed for positions of diagnostics. So this class holds them by a weak reference and parses the text again after
 * they have been garbage-collected.
 */
class Syntax {
  readonly #text: string;
  #parsed: WeakRef<Composition>;

  constructor(text: string, parsed: Composition) {
    this.#text = text;
    this.#parsed = new WeakRef(parsed);
  }

  /** @param at index of the document in the text */
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

function valueOf(document: Document.Parsed): { plain: Record<string, unknown> } | YamlError | undefined {
  if (document.contents === null) return undefined;
  const [offset] = document.contents.range;
  const error = (message: string): YamlError => ({ offset, end: offset, message });
  try {
    const plain: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    if (plain === null) return undefined;
    const shape = findShapeError(plain);
    if (shape !== undefined) return error(shape);
    if (typeof plain !== "object" || Array.isArray(plain))
      return error("not an object: a manifest starts with apiVersion and kind");
    // The cast holds: the shape was just checked, and a YAML mapping becomes a plain object.
    return { plain: plain as Record<string, unknown> };
  } catch (cause) {
    return error(wordsOf(cause));
  }
}

interface Expanded {
  readonly object: Readonly<Record<string, unknown>>;
  readonly prefix: readonly string[];
}

/** Expands `kind: List` and typed lists, whose items may leave out the apiVersion and kind that the list implies. */
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
  // The value of an unknown field may be a secret under a misspelt name, so it is masked too.
  const secrets = about === "name" ? [...known, ...spansAt(document, nodeAt(document, path), [])] : known;
  const inner = offset === undefined ? undefined : spanInScalar(text, nodeAt(document, path), offset);
  const span = inner ?? (about === "name" ? keySpan(document, path) : valueSpan(document, path));
  return { ...locationAt(lines, span.start), excerpt: excerptOf(text, span, secrets) };
}

const LAST_APPLIED = ["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"];

/** Returns the paths of values that no message may show. In a Secret these are all fields that do not identify it. */
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
