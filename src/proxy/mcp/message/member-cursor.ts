/**
 * Goes through the members of objects of a checked text without allocating anything for them. Lists of tools have tens of
 * thousands of members: with the generators of `spans.ts` alone, joining 1,000 tools took twice as long.
 */
import { skipChecked, skipCheckedString, skipSpace } from "./scan.ts";

const OPEN_BRACE = 0x7b;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

export class MemberCursor {
  /** Position of the name with its quotation marks, and of the value. */
  nameStart = 0;
  nameEnd = 0;
  start = 0;
  end = 0;
  readonly #bytes: Buffer;
  /** Position of the next name, or of the closing brace. */
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Begins with the members of an object. @returns false for another value, which has none */
  open(start: number): boolean {
    const isObject = this.#bytes[start] === OPEN_BRACE;
    this.#at = isObject ? skipSpace(this.#bytes, start + 1) : start;
    return isObject;
  }

  /** Goes to the next member. @returns false when there is none */
  next(): boolean {
    if (!this.nextName()) return false;
    this.passValue(skipChecked(this.#bytes, this.start));
    return true;
  }

  /** Goes to the name of the next member; `passValue` has to follow. @returns false when there is none */
  nextName(): boolean {
    const bytes = this.#bytes;
    if (bytes[this.#at] !== QUOTE) return false;
    this.nameStart = this.#at;
    this.nameEnd = skipCheckedString(bytes, this.nameStart);
    // Behind the name comes its colon.
    this.start = skipSpace(bytes, skipSpace(bytes, this.nameEnd) + 1);
    return true;
  }

  /** Goes on behind a value that the caller has read. @param end position after it */
  passValue(end: number): void {
    this.end = end;
    const behind = skipSpace(this.#bytes, end);
    this.#at = this.#bytes[behind] === COMMA ? skipSpace(this.#bytes, behind + 1) : behind;
  }

  /** Returns the position after the object when `next` has returned false. */
  get objectEnd(): number {
    return this.#at + 1;
  }

  /** Decides whether the member has this name, however it is escaped. @param name of ASCII characters */
  isNamed(name: string): boolean {
    return isNameAt(this.#bytes, this.nameStart, this.nameEnd, name);
  }
}

/** Does so for a name from one quotation mark to the position after the other. */
export function isNameAt(bytes: Buffer, start: number, end: number, name: string): boolean {
  const length = end - start - 2;
  // Each character of an escaped name takes at least one byte, and an escape takes more.
  if (length < name.length) return false;
  if (length > name.length)
    return isEscaped(bytes, start, end) && JSON.parse(bytes.toString("utf8", start, end)) === name;
  for (let at = 0; at < length; at++) if (bytes[start + 1 + at] !== name.charCodeAt(at)) return false;
  return true;
}

function isEscaped(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === BACKSLASH) return true;
  return false;
}
