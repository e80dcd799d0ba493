/**
 * Finds values in JSON text by their position, so that what must be read or changed of an MCP message is found without
 * parsing the rest. The bytes have been checked by `readMessages` (message.ts); members of equal name count as for
 * JSON.parse: the last one wins.
 */
import { skipName, skipSpace, skipString, skipValue } from "./scan.ts";

/** Position of a value: its first byte, and the byte after its last one. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A member of an object: its name with the quotation marks, and its value. */
export interface Member {
  readonly name: Span;
  readonly value: Span;
}

const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/** Returns the position of the outermost value. */
export function wholeOf(bytes: Buffer): Span {
  const start = skipSpace(bytes, 0);
  return { start, end: skipValue(bytes, start) };
}

/** Returns the value that a path of member names leads to; undefined when there is none. */
export function findMember(bytes: Buffer, within: Span, ...path: readonly string[]): Span | undefined {
  let found: Span | undefined = within;
  for (const name of path) {
    if (found === undefined) return undefined;
    found = findOwn(bytes, found, name);
  }
  return found;
}

function findOwn(bytes: Buffer, object: Span, name: string): Span | undefined {
  let found: Span | undefined;
  for (const member of eachMember(bytes, object)) if (isNamed(bytes, member, name)) found = member.value;
  return found;
}

/** Decides whether a member has this name, however it is escaped. @param name of ASCII characters */
export function isNamed(bytes: Buffer, { name: { start, end } }: Member, name: string): boolean {
  const length = end - start - 2;
  // Each character of an escaped name takes at least one byte, and an escape takes more.
  if (length < name.length) return false;
  if (length === name.length) return isAscii(bytes, start + 1, name);
  const isEscaped = bytes.subarray(start, end).includes(BACKSLASH);
  return isEscaped && readString(bytes, { start, end }) === name;
}

function isAscii(bytes: Buffer, start: number, text: string): boolean {
  for (let at = 0; at < text.length; at++) if (bytes[start + at] !== text.charCodeAt(at)) return false;
  return true;
}

/** Yields the members of an object in order; nothing for other values. */
export function* eachMember(bytes: Buffer, object: Span): Generator<Member> {
  if (bytes[object.start] !== OPEN_BRACE) return;
  let at = skipSpace(bytes, object.start + 1);
  while (bytes[at] === QUOTE) {
    const name = { start: at, end: skipString(bytes, at) };
    const start = skipName(bytes, at);
    const end = skipValue(bytes, start);
    yield { name, value: { start, end } };
    at = skipSpace(bytes, end);
    if (bytes[at] !== COMMA) return;
    at = skipSpace(bytes, at + 1);
  }
}

/** Yields the elements of a list in order; nothing for other values. */
export function* eachElement(bytes: Buffer, list: Span): Generator<Span> {
  if (bytes[list.start] !== OPEN_BRACKET) return;
  let start = skipSpace(bytes, list.start + 1);
  while (start < list.end - 1) {
    const end = skipValue(bytes, start);
    yield { start, end };
    const comma = skipSpace(bytes, end);
    if (bytes[comma] !== COMMA) return;
    start = skipSpace(bytes, comma + 1);
  }
}

/** Decodes a string; undefined for other values. */
export function readString(bytes: Buffer, { start, end }: Span): string | undefined {
  if (bytes[start] !== QUOTE) return undefined;
  const text = bytes.toString("utf8", start, end);
  // A JSON string without escapes stands for the text between its quotation marks.
  return text.includes("\\") ? String(JSON.parse(text)) : text.slice(1, -1);
}

/** Decodes the string that a path of member names leads to. */
export function stringAt(bytes: Buffer, within: Span, ...path: readonly string[]): string | undefined {
  const found = findMember(bytes, within, ...path);
  return found === undefined ? undefined : readString(bytes, found);
}

/** Returns the JSON text of a value. */
export function textOf(bytes: Buffer, { start, end }: Span): string {
  return bytes.toString("utf8", start, end);
}
