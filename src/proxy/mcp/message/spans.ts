/**
 * Finds values in JSON text by their position, so that what must be read or changed of an MCP message is found without
 * parsing the rest. The bytes have been checked by `readMessages` (message.ts); members of equal name count as for
 * JSON.parse: the last one wins.
 */
import { isNameAt, MemberCursor } from "./member-cursor.ts";
import { skipChecked, skipSpace } from "./scan.ts";

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

const OPEN_BRACKET = 0x5b;
const QUOTE = 0x22;
const COMMA = 0x2c;

/** Returns the position of the outermost value. */
export function wholeOf(bytes: Buffer): Span {
  const start = skipSpace(bytes, 0);
  return { start, end: skipChecked(bytes, start) };
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

function findOwn(bytes: Buffer, { start }: Span, name: string): Span | undefined {
  let found: Span | undefined;
  const members = new MemberCursor(bytes);
  if (!members.open(start)) return undefined;
  while (members.next()) if (members.isNamed(name)) found = { start: members.start, end: members.end };
  return found;
}

/** Decides whether a member has this name, however it is escaped. @param name of ASCII characters */
export function isNamed(bytes: Buffer, { name: { start, end } }: Member, name: string): boolean {
  return isNameAt(bytes, start, end, name);
}

/** Some parsers ignore the case of names, by the rules of Unicode: there are two more letters for "s" and "k". */
export function isLike(text: string | undefined, name: string): boolean {
  if (text === name) return true;
  if (text?.length !== name.length) return false;
  return text.normalize("NFKC").toLowerCase() === name.toLowerCase();
}

/** Yields the members of an object in order; nothing for other values. */
export function* eachMember(bytes: Buffer, object: Span): Generator<Member> {
  const members = new MemberCursor(bytes);
  if (!members.open(object.start)) return;
  while (members.next()) {
    const { nameStart, nameEnd, start, end } = members;
    yield { name: { start: nameStart, end: nameEnd }, value: { start, end } };
  }
}

/** Yields the elements of a list in order; nothing for other values. */
export function* eachElement(bytes: Buffer, list: Span): Generator<Span> {
  if (bytes[list.start] !== OPEN_BRACKET) return;
  let start = skipSpace(bytes, list.start + 1);
  while (start < list.end - 1) {
    const end = skipChecked(bytes, start);
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
