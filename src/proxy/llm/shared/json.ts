/** Parses JSON from clients and providers: bounded in depth, strict in UTF-8, with accessors that check each type. */
import { isUtf8 } from "node:buffer";

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json | undefined;
}

/** No real request nests deeper. Printing or walking a deeper value could exhaust the stack. */
const MAX_JSON_DEPTH = 256;

export class JsonError extends Error {}

/** @throws JsonError when the bytes are not UTF-8, nest too deep or are not JSON */
export function parseJson(bytes: Buffer): Json {
  if (!isUtf8(bytes)) throw new JsonError("not UTF-8");
  const text = bytes.toString("utf8");
  if (hasMoreBrackets(text, MAX_JSON_DEPTH) && depthOf(text) > MAX_JSON_DEPTH) throw new JsonError("nested too deep");
  try {
    // JSON.parse yields exactly the Json union.
    return JSON.parse(text) as Json;
  } catch (cause) {
    throw new JsonError("not JSON", { cause });
  }
}

/** @returns undefined for anything that is not a JSON object within the bounds */
export function parseObject(bytes: Buffer): JsonObject | undefined {
  // An error costs several times what parsing does, and every stream of chat completions ends with `[DONE]`.
  if (!beginsObject(bytes)) return undefined;
  try {
    return objectOf(parseJson(bytes));
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

/** Tells whether the first byte that is not whitespace of JSON (RFC 8259 §2) is an opening brace. */
function beginsObject(bytes: Buffer): boolean {
  let at = 0;
  while (at < bytes.length && WHITESPACE.has(bytes[at])) at++;
  return bytes[at] === OPENING_BRACE;
}

export function objectOf(value: Json | undefined): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}

export function stringOf(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Returns a count: finite and not negative, rounded down. */
export function countOf(value: Json | undefined): number | undefined {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? Math.floor(value) : undefined;
}

export function listOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

const WHITESPACE: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);
const OPENING_BRACE = 0x7b;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Tells whether a text has more opening brackets than `most`, in strings or outside. A text without them cannot nest
 * deeper, and `indexOf` finds brackets several times faster than a loop over all characters measures the nesting.
 */
function hasMoreBrackets(text: string, most: number): boolean {
  let count = 0;
  for (const bracket of ["{", "["])
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) if (++count > most) return true;
  return false;
}

/**
 * Measures the nesting of brackets outside strings. Malformed text may give any number, since JSON.parse refuses it.
 */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at + 1);
    else if (code === OPENING_BRACE || code === 0x5b) {
      if (++depth > deepest) deepest = depth;
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
  return deepest;
}

/** Returns the index of the closing quote: the first one that follows an even number of backslashes. */
function endOfString(text: string, from: number): number {
  for (let at = from; ;) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return text.length;
    let slashes = 0;
    while (quote - 1 - slashes >= from && text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return quote;
    at = quote + 1;
  }
}
