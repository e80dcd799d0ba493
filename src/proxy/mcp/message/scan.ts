/**
 * Scans JSON (RFC 8259) on bytes without building values, so that long integers, unknown members and spacing of MCP
 * messages survive byte for byte. The readers of `spans.ts` and `message.ts` are built on it. The caller has checked
 * that the bytes are UTF-8.
 */

/** Objects and lists inside each other, the outermost one included. Deeper texts are refused. */
const MAX_DEPTH = 64;

/** Results of `skipValue` that are no position. */
export const NOT_JSON = -1;
export const TOO_DEEP = -2;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Returns the position of the first byte at or after `at` that is no white space. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let next = at;
  while (next < bytes.length) {
    const byte = bytes[next];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    next++;
  }
  return next;
}

/**
 * Checks one value and returns the position after it, or NOT_JSON, or TOO_DEEP.
 * @param depth number of objects and lists around the value
 */
export function skipValue(bytes: Uint8Array, at: number, depth = 0): number {
  switch (bytes[at]) {
    case QUOTE:
      return skipString(bytes, at);
    case OPEN_BRACE:
      return depth >= MAX_DEPTH ? TOO_DEEP : skipObject(bytes, at, depth + 1);
    case OPEN_BRACKET:
      return depth >= MAX_DEPTH ? TOO_DEEP : skipList(bytes, at, depth + 1);
    case 0x74:
      return skipWord(bytes, at, "true");
    case 0x66:
      return skipWord(bytes, at, "false");
    case 0x6e:
      return skipWord(bytes, at, "null");
    default:
      return skipNumber(bytes, at);
  }
}

/**
 * Returns the position after a value of a text that `skipValue` has checked. It looks for brackets and quotation marks
 * only, which takes three quarters of the time: bytes of a long list are passed more than once.
 */
export function skipChecked(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  if (first === QUOTE) return skipCheckedString(bytes, at);
  if ((first | CASE) !== OPEN_BRACE) return skipCheckedWord(bytes, at);
  const { length } = bytes;
  let depth = 0;
  let next = at;
  while (next < length) {
    const byte = bytes[next] ?? 0;
    if (byte === QUOTE) {
      next = skipCheckedString(bytes, next);
      continue;
    }
    next++;
    // Braces and brackets differ in one bit.
    if ((byte | CASE) === OPEN_BRACE) depth++;
    else if ((byte | CASE) === CLOSE_BRACE && --depth === 0) return next;
  }
  return length;
}

/** The bit in which brackets and braces differ. */
const CASE = 0x20;

/** Returns the position after the closing quotation mark of a checked string. */
export function skipCheckedString(bytes: Uint8Array, at: number): number {
  const { length } = bytes;
  let next = at + 1;
  while (next < length) {
    const byte = bytes[next] ?? 0;
    if (byte === QUOTE) return next + 1;
    next += byte === BACKSLASH ? 2 : 1;
  }
  return length;
}

/** Numbers and words end in front of white space, a comma or a closing bracket. */
function skipCheckedWord(bytes: Uint8Array, at: number): number {
  let next = at;
  while (next < bytes.length) {
    const byte = bytes[next] ?? 0;
    if (byte <= 0x20 || byte === COMMA || (byte | CASE) === CLOSE_BRACE) break;
    next++;
  }
  return next;
}

/** Checks a string and returns the position after its closing quotation mark, or NOT_JSON. */
function skipString(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return NOT_JSON;
  let next = at + 1;
  while (next < bytes.length) {
    const byte = bytes[next] ?? 0;
    if (byte === QUOTE) return next + 1;
    if (byte < 0x20) return NOT_JSON;
    if (byte === BACKSLASH) {
      const length = escapeLength(bytes, next);
      if (length === NOT_JSON) return NOT_JSON;
      next += length;
    } else next++;
  }
  return NOT_JSON;
}

/** The bytes that may follow a backslash, apart from `u`: quotation mark, backslash, slash, b, f, n, r, t. */
const SIMPLE_ESCAPES: ReadonlySet<number | undefined> = new Set([0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74]);

function escapeLength(bytes: Uint8Array, at: number): number {
  const byte = bytes[at + 1];
  if (SIMPLE_ESCAPES.has(byte)) return 2;
  if (byte !== 0x75 || at + 6 > bytes.length) return NOT_JSON;
  for (let next = at + 2; next < at + 6; next++) if (!isHexDigit(bytes[next] ?? 0)) return NOT_JSON;
  return 6;
}

function isHexDigit(byte: number): boolean {
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** Takes the positions of a member that was checked: its name with the quotation marks, and its value. */
export type OnMember = (nameStart: number, nameEnd: number, start: number, end: number) => void;

/** Checks an outermost object like `skipValue`, and reports its members. */
export function skipMembers(bytes: Uint8Array, at: number, onMember: OnMember): number {
  let next = skipSpace(bytes, at + 1);
  if (bytes[next] === CLOSE_BRACE) return next + 1;
  for (;;) {
    const nameStart = next;
    const start = skipName(bytes, nameStart);
    if (start < 0) return start;
    const end = skipValue(bytes, start, 1);
    if (end < 0) return end;
    onMember(nameStart, skipCheckedString(bytes, nameStart), start, end);
    next = skipSpace(bytes, end);
    if (bytes[next] === CLOSE_BRACE) return next + 1;
    if (bytes[next] !== COMMA) return NOT_JSON;
    next = skipSpace(bytes, next + 1);
  }
}

function skipObject(bytes: Uint8Array, at: number, depth: number): number {
  let next = skipSpace(bytes, at + 1);
  if (bytes[next] === CLOSE_BRACE) return next + 1;
  for (;;) {
    next = skipName(bytes, next);
    if (next < 0) return next;
    next = skipValue(bytes, next, depth);
    if (next < 0) return next;
    next = skipSpace(bytes, next);
    if (bytes[next] === CLOSE_BRACE) return next + 1;
    if (bytes[next] !== COMMA) return NOT_JSON;
    next = skipSpace(bytes, next + 1);
  }
}

/** Checks the name of a member with its colon, and returns the position of the value, or NOT_JSON. */
function skipName(bytes: Uint8Array, at: number): number {
  const end = skipString(bytes, at);
  if (end < 0) return end;
  const colon = skipSpace(bytes, end);
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : NOT_JSON;
}

function skipList(bytes: Uint8Array, at: number, depth: number): number {
  let next = skipSpace(bytes, at + 1);
  if (bytes[next] === CLOSE_BRACKET) return next + 1;
  for (;;) {
    next = skipValue(bytes, next, depth);
    if (next < 0) return next;
    next = skipSpace(bytes, next);
    if (bytes[next] === CLOSE_BRACKET) return next + 1;
    if (bytes[next] !== COMMA) return NOT_JSON;
    next = skipSpace(bytes, next + 1);
  }
}

function skipWord(bytes: Uint8Array, at: number, word: string): number {
  for (let index = 0; index < word.length; index++) if (bytes[at + index] !== word.charCodeAt(index)) return NOT_JSON;
  return at + word.length;
}

function skipNumber(bytes: Uint8Array, at: number): number {
  let next = bytes[at] === MINUS ? at + 1 : at;
  if (bytes[next] === ZERO) next++;
  else next = skipDigits(bytes, next);
  if (next >= 0 && bytes[next] === DOT) next = skipDigits(bytes, next + 1);
  // "e" or "E"
  if (next >= 0 && ((bytes[next] ?? 0) | 0x20) === 0x65) {
    const sign = bytes[next + 1];
    next = skipDigits(bytes, sign === PLUS || sign === MINUS ? next + 2 : next + 1);
  }
  return next;
}

/** @returns NOT_JSON when there is no digit */
function skipDigits(bytes: Uint8Array, at: number): number {
  let next = at;
  while (isDigit(bytes[next])) next++;
  return next === at ? NOT_JSON : next;
}
