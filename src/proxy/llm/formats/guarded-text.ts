/**
 * The texts of a request or an answer that prompt guards look at, each with the place to write a masked text back to.
 * Every chat format collects them with the helpers of this file (formats/<format>/texts.ts); the guards read them.
 */
import { listOf, objectOf, stringOf, type Json, type JsonObject } from "../shared/json.ts";

/** The parts of a conversation that a guard may be limited to. */
export type GuardScope = "SystemPrompt" | "Messages" | "ToolOutput" | "ToolInput";

export interface GuardedText {
  readonly scope: GuardScope;
  readonly role: string;
  /** The text as it is now, after earlier masks. */
  readonly text: string;
  /** A signature or a recording covers the text: it may be read, and a mask that would change it rejects instead. */
  readonly isSigned: boolean;
  replace(text: string): void;
}

/** A message in the flat form that webhooks see. */
export interface FlatMessage {
  readonly role: string;
  readonly content: string;
}

/** A piece of text in an event of a stream. */
export interface StreamedText {
  /** Names the choice and part that the piece continues; texts of different lanes are never joined. */
  readonly lane: string;
  readonly scope: GuardScope;
  readonly text: string;
  /** Set for an event that repeats a text which earlier events may have carried in pieces. */
  readonly isRepeated?: boolean;
}

/** The reader of guarded texts of one chat format. The bodies are those of the client. */
export interface FormatTexts {
  requestTexts(body: JsonObject): GuardedText[];
  requestMessages(body: JsonObject): FlatMessage[];
  /** Writes messages in place of all messages of the request. */
  replaceMessages(body: JsonObject, messages: readonly FlatMessage[]): void;
  answerTexts(body: JsonObject): GuardedText[];
  /** Returns one text for each candidate answer, with its text parts joined. */
  answerChoices(body: JsonObject): GuardedText[];
  streamedTexts(event: JsonObject): StreamedText[];
}

export interface TextPlace {
  readonly scope: GuardScope;
  readonly role: string;
  readonly isSigned?: boolean;
}

class PlacedText implements GuardedText {
  readonly scope: GuardScope;
  readonly role: string;
  readonly isSigned: boolean;
  text: string;
  readonly #write: (text: string) => void;

  constructor(place: TextPlace, text: string, write: (text: string) => void) {
    this.scope = place.scope;
    this.role = place.role;
    this.isSigned = place.isSigned ?? false;
    this.text = text;
    this.#write = write;
  }

  replace(text: string): void {
    if (text === this.text) return;
    this.text = text;
    this.#write(text);
  }
}

/** Collects the texts of one body. */
export class TextCollector {
  readonly texts: GuardedText[] = [];

  add(place: TextPlace, text: string, write: (text: string) => void): void {
    if (text !== "") this.texts.push(new PlacedText(place, text, write));
  }

  /** Adds the text of a candidate answer, even an empty one, because a webhook answers with as many choices. */
  choice(place: TextPlace, text: string, write: (text: string) => void): void {
    this.texts.push(new PlacedText(place, text, write));
  }

  /** Adds a member that is a text. @param changed is called after a mask */
  member(object: JsonObject, key: string, place: TextPlace, changed?: () => void): void {
    const text = stringOf(object[key]);
    if (text === undefined) return;
    this.add(place, text, (masked) => {
      object[key] = masked;
      changed?.();
    });
  }

  /** Adds a member that is a text or a list of parts. */
  content(object: JsonObject, key: string, place: TextPlace, parts: PartTexts): void {
    const content = object[key];
    if (Array.isArray(content)) this.parts(content, place, parts);
    else this.member(object, key, place);
  }

  /**
   * Adds the parts of a list; neighbours that are texts are joined, so that no border between two parts hides a match.
   * A mask is written into the first of them, and the others are removed.
   */
  parts(list: Json[], place: TextPlace, { keyOf, separator, other }: PartTexts): void {
    let open: { readonly part: JsonObject; readonly key: string }[] = [];
    const close = (): void => {
      if (open.length > 0) this.#joined(list, open, place, separator);
      open = [];
    };
    for (const item of list) {
      const part = objectOf(item);
      const key = part === undefined ? undefined : keyOf(part);
      if (part !== undefined && key !== undefined && typeof part[key] === "string") open.push({ part, key });
      else {
        close();
        if (part !== undefined) other?.(part);
      }
    }
    close();
  }

  /** Adds every text inside a value; keys, numbers and booleans are left out. */
  values(value: Json | undefined, place: TextPlace, write: (text: string) => void): void {
    if (typeof value === "string") this.add(place, value, write);
    else if (Array.isArray(value))
      for (const [at, item] of value.entries()) this.values(item, place, (text) => void (value[at] = text));
    else if (typeof value === "object" && value !== null)
      for (const [key, item] of Object.entries(value)) this.values(item, place, (text) => setOwn(value, key, text));
  }

  /** Adds the texts inside a member of any shape. */
  memberValues(object: JsonObject, key: string, place: TextPlace): void {
    this.values(object[key], place, (text) => setOwn(object, key, text));
  }

  /**
   * Adds the texts inside arguments that travel as JSON text. A mask changes only the literal, so that the arguments
   * stay JSON and keep their form; text that is not JSON counts as one text.
   */
  argumentsText(object: JsonObject, key: string, place: TextPlace): void {
    const source = stringOf(object[key]);
    if (source === undefined || source === "") return;
    const pieces = isJson(source) ? literalsOf(source) : undefined;
    if (pieces === undefined) return this.member(object, key, place);
    for (const [at, piece] of pieces.entries()) {
      if (at % 2 === 0) continue;
      // The literal is part of valid JSON, so it is a string.
      this.add(place, JSON.parse(piece) as string, (text) => {
        pieces[at] = JSON.stringify(text);
        object[key] = pieces.join("");
      });
    }
  }

  #joined(
    list: Json[],
    open: readonly { readonly part: JsonObject; readonly key: string }[],
    place: TextPlace,
    separator: string,
  ): void {
    const text = open.map(({ part, key }) => stringOf(part[key]) ?? "").join(separator);
    this.add(place, text, (masked) => {
      const [first, ...rest] = open;
      if (first === undefined) return;
      first.part[first.key] = masked;
      dropAnnotations(first.part);
      const gone = new Set<Json>(rest.map(({ part }) => part));
      const kept = list.filter((item) => !gone.has(item));
      list.splice(0, list.length, ...kept);
      // A cache mark belongs to everything before it, so the text takes over the last one.
      const marked = rest.findLast(({ part }) => part["cache_control"] !== undefined);
      if (marked !== undefined) first.part["cache_control"] = marked.part["cache_control"];
    });
  }
}

/** Says which member of a part is its text. */
export interface PartTexts {
  /** @returns undefined for a part that is not a plain text */
  keyOf(part: JsonObject): string | undefined;
  /** Stands between the texts of two neighbours. */
  readonly separator: string;
  /** Called for the other parts. */
  readonly other?: (part: JsonObject) => void;
}

/** Removes annotations of a text that has changed: their positions are wrong from then on. */
function dropAnnotations(part: JsonObject): void {
  for (const key of ["annotations", "citations", "logprobs"]) {
    if (Array.isArray(part[key])) part[key] = [];
    else if (part[key] !== undefined && part[key] !== null) delete part[key];
  }
}

function setOwn(object: JsonObject, key: string, text: string): void {
  Object.defineProperty(object, key, { value: text, writable: true, enumerable: true, configurable: true });
}

function isJson(source: string): boolean {
  try {
    JSON.parse(source);
    return true;
  } catch {
    return false;
  }
}

const LITERAL = /"[^"\\]*(?:\\.[^"\\]*)*"/g;
const COLON = /\s*:/y;

/** Splits JSON text at its string values: texts between them at even places, the literals at odd ones. */
function literalsOf(source: string): string[] {
  const pieces: string[] = [];
  let at = 0;
  for (const { 0: literal, index } of source.matchAll(LITERAL)) {
    const end = index + literal.length;
    COLON.lastIndex = end;
    if (COLON.test(source)) continue;
    pieces.push(source.slice(at, index), literal);
    at = end;
  }
  pieces.push(source.slice(at));
  return pieces;
}

/** Returns the member of a list of objects, without what is no object. */
export function objectsIn(value: Json | undefined): JsonObject[] {
  return listOf(value)
    .map(objectOf)
    .filter((item) => item !== undefined);
}

/** Joins the texts of a content that is a text or a list of parts. */
export function flatText(content: Json | undefined, { keyOf, separator }: PartTexts): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const texts = content.flatMap((item) => {
    const part = objectOf(item);
    const key = part === undefined ? undefined : keyOf(part);
    const text = key === undefined ? undefined : stringOf(part?.[key]);
    return text === undefined ? [] : [text];
  });
  return texts.join(separator);
}
