/**
 * Composes the YAML documents of a text one after the other, and limits what a malicious or accidental input can cost
 * in time and memory. parse.ts uses it once for the objects and again when it needs a position in the text.
 *
 * Each limit below guards one step of the `yaml` library that takes quadratic or exponential time, or that recurses. A
 * text that exceeds a limit yields no documents at all, so the file keeps its previous state instead of losing some
 * objects.
 */
import {
  type CST,
  Composer,
  type Document,
  Lexer,
  LineCounter,
  Parser,
  type Tags,
  type YAMLParseError,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
} from "yaml";
import { messageOf } from "../../lib/errors.ts";

export interface YamlError {
  readonly offset: number;
  readonly end: number;
  readonly message: string;
}

interface ComposedDocument {
  readonly document: Document.Parsed;
  /** Errors in the text of the document; at most MAX_TREE_ERRORS. */
  readonly errors: readonly YamlError[];
  /** False when `document.toJS` must not be called: a key is not a scalar, or there are too many anchors. */
  readonly isReadable: boolean;
}

export interface Composition {
  readonly documents: readonly ComposedDocument[];
  readonly lines: LineCounter;
  /** Says why the text after this position was not read; undefined when the text was read to its end. */
  readonly error: YamlError | undefined;
}

/** Tags of YAML 1.1 (https://yaml.org/type/) that kubectl does not resolve. */
const FOREIGN_TAGS = new Set([
  "tag:yaml.org,2002:timestamp",
  "tag:yaml.org,2002:set",
  "tag:yaml.org,2002:omap",
  "tag:yaml.org,2002:pairs",
]);
/** Limit of reported errors per document. */
const MAX_TREE_ERRORS = 20;
/**
 * Limit of errors per document. A document with more is not a manifest, and the library takes quadratic time in their
 * number.
 */
const MAX_ERRORS = 100;
/** Limit of documents per file. */
const MAX_DOCUMENTS = 10_000;
/** Limit of lexemes per document. A key with its value on a line of its own has six. */
const MAX_LEXEMES = 1_500_000;
/** Limit of anchors and aliases per document, because the library scans all of them for each alias. */
const MAX_ANCHORS = 2_000;
const LEXEMES_PER_STEP = 500;

/**
 * Composes a text as a generator that yields between pieces of work, so that the caller can interrupt it. One document
 * is composed in one piece.
 */
export function* composeDocuments(text: string): Generator<undefined, Composition> {
  const lines = new LineCounter();
  const documents: ComposedDocument[] = [];
  let offset = 0;
  const error = (message: string): Composition => ({ documents, lines, error: { offset, end: offset, message } });
  try {
    const composer = boundedComposer();
    for (const token of tokensOf(text, lines)) {
      yield;
      if (token === undefined) continue;
      if ("offset" in token) offset = token.offset;
      for (const document of composer.next(token)) documents.push(composed(document));
      if (documents.length > MAX_DOCUMENTS) {
        throw new TooMuch(`more than ${MAX_DOCUMENTS} documents in one file: put them into several files`);
      }
    }
    for (const document of composer.end(false, text.length)) documents.push(composed(document));
    return { documents, lines, error: undefined };
  } catch (cause) {
    // A text beyond the limits yields nothing, so that the file keeps its previous state.
    if (cause instanceof TooMuch) documents.length = 0;
    // The composer recurses: text that is nested thousands deep ends here as a RangeError and does not end the process.
    return error(wordsOf(cause));
  }
}

/**
 * Yields the documents as trees of tokens, and undefined between pieces of work.
 * @throws TooMuch when a document is too large
 */
function* tokensOf(text: string, lines: LineCounter): Generator<CST.Token | undefined> {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (++lexemes % LEXEMES_PER_STEP === 0) yield undefined;
    if (lexemes > MAX_LEXEMES) throw new TooMuch("the document is too large: put its objects into several files");
    for (const token of parser.next(lexeme)) {
      yield token;
      lexemes = 0;
    }
  }
  yield* parser.end();
}

class TooMuch extends Error {}

/** Returns a composer that gives up after MAX_ERRORS errors. */
function boundedComposer(): Composer {
  const composer = new Composer({
    version: "1.1",
    strict: true,
    // The library compares each key with all keys before it; `keyErrors` finds duplicates in linear time.
    uniqueKeys: false,
    customTags: kubectlTags,
  });
  // oxlint-disable-next-line typescript/dot-notation -- private to the types of the library; there is no other way in
  const tell = composer["onError"] as (...args: unknown[]) => void;
  let errors = 0;
  Object.assign(composer, {
    onError: (...args: unknown[]) => {
      if (++errors > MAX_ERRORS) throw new TooMuch("more than a hundred errors: is this a manifest?");
      tell(...args);
    },
  });
  return composer;
}

/** Removes the tags of YAML 1.1 that kubectl does not resolve, such as timestamps and base-sixty numbers. */
function kubectlTags(tags: Tags): Tags {
  return tags.filter((tag) => {
    if (typeof tag !== "object") return !["timestamp", "set", "omap", "pairs", "intTime", "floatTime"].includes(tag);
    return !FOREIGN_TAGS.has(tag.tag) && !("format" in tag && tag.format === "TIME");
  });
}

/**
 * Collects the errors of a document: the first syntax error, since the parser only guesses after it, and every invalid
 * key.
 */
function composed(document: Document.Parsed): ComposedDocument {
  const [first] = document.errors;
  const errors: YamlError[] = [];
  if (first !== undefined) errors.push(yamlError(document, first));
  let isReadable = true;
  for (const error of treeErrors(document)) {
    if (!error.isReadable) isReadable = false;
    const isGuess = first !== undefined && !error.isReadable;
    if (errors.length < MAX_TREE_ERRORS && !isGuess) errors.push(error);
    if (errors.length >= MAX_TREE_ERRORS && !isReadable) break;
  }
  return { document, errors, isReadable };
}

/** The parser notices a missing end only where the next token begins, often at the end of the file. */
const MISSING_END = /^Missing closing|must end with a|must be sufficiently indented and end with/;

/** Moves the error of an unclosed quote or bracket to the position where it was opened. */
function yamlError(document: Document.Parsed, cause: YAMLParseError): YamlError {
  const [noticed, end] = cause.pos;
  const message = wordsOf(cause);
  const opened = MISSING_END.test(message) ? lastOpened(document, noticed) : undefined;
  return opened === undefined ? { offset: noticed, end, message } : { offset: opened, end: opened + 1, message };
}

/** Returns the offset of the innermost quoted text or flow collection that reaches up to a position. */
function lastOpened(document: Document.Parsed, place: number): number | undefined {
  let found: number | undefined;
  const open: unknown[] = [document.contents];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (isPair(node)) {
      for (const part of [node.key, node.value]) if (part !== null && part !== undefined) open.push(part);
      continue;
    }
    if (!isScalar(node) && !isCollection(node)) continue;
    const [start, , end] = node.range ?? [place, place, place];
    const isOpened = isCollection(node) ? node.flow === true : node.type?.startsWith("QUOTE") === true;
    if (isOpened && start < place && end >= place && start >= (found ?? 0)) found = start;
    if (isCollection(node)) for (const item of node.items) open.push(item);
  }
  return found;
}

interface YamlTreeError extends YamlError {
  readonly isReadable: boolean;
}

/**
 * Yields duplicate keys, keys that are not scalars, and too many anchors. The walk is iterative, since a document may
 * nest as deep as the composer could recurse.
 */
function* treeErrors(document: Document.Parsed): Generator<YamlTreeError> {
  const open: unknown[] = [document.contents];
  let anchors = 0;
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (isAlias(node) || ((isScalar(node) || isCollection(node)) && node.anchor !== undefined)) anchors++;
    if (anchors > MAX_ANCHORS) {
      yield { ...errorAt(node, `more than ${MAX_ANCHORS} anchors and aliases in one document`), isReadable: false };
      return;
    }
    if (!isCollection(node)) continue;
    if (isMap(node)) yield* keyErrors(node.items);
    // Push in reverse, so that the first item is visited first.
    for (let at = node.items.length - 1; at >= 0; at--) {
      const item: unknown = node.items[at];
      const value = isPair(item) ? item.value : item;
      if (value !== null && value !== undefined) open.push(value);
    }
  }
}

function* keyErrors(items: readonly unknown[]): Generator<YamlTreeError> {
  const seen = new Set<string>();
  for (const item of items) {
    if (!isPair(item)) continue;
    const { key } = item;
    if (isCollection(key)) {
      // The library would print such a key as text, which takes exponential time in its depth.
      yield { ...errorAt(key, "a key must be text, not a list or a map"), isReadable: false };
      continue;
    }
    if (!isScalar(key)) continue;
    const name = String(key.value);
    if (seen.has(name)) yield { ...errorAt(key, "Map keys must be unique"), isReadable: true };
    seen.add(name);
  }
}

function errorAt(node: unknown, message: string): YamlError {
  const range = isAlias(node) || isScalar(node) || isCollection(node) ? node.range : undefined;
  return { offset: range?.[0] ?? 0, end: range?.[1] ?? 0, message };
}

/** Returns the message of an error. A stack overflow is reported by the library or by V8, each in its own words. */
export function wordsOf(cause: unknown): string {
  const message = messageOf(cause);
  return cause instanceof RangeError || message.startsWith("Maximum call stack") ? "nested too deeply" : message;
}
