/** Text → tokens, by the lexical rules of the CEL language definition. */
import { CelError } from "./errors.ts";

export interface Token {
  /** An operator or bracket by its own text, or one of the classes below. */
  readonly kind: string;
  readonly position: number;
  readonly text: string;
  /** Value of a literal: string or Uint8Array of "literal", number of "double", bigint of "int" and "uint". */
  readonly value: string | Uint8Array | number | bigint | undefined;
}

const MAX_TOKENS = 16_384;
const SKIP = String.raw`(?:[ \t\r\n\f]+|\/\/[^\n]*)*`;
const QUOTE = `((?:[bB][rR]?|[rR][bB]?)?(?:"""|'''|"|'))`;
const DOUBLE = String.raw`(\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)`;
const INTEGER = `(0[xX][0-9a-fA-F]+|\\d+)([uU])?`;
const NAME = "([A-Za-z_][A-Za-z0-9_]*)";
const QUOTED_NAME = "`([A-Za-z0-9_.\\-\\/ ]+)`";
const OPERATOR = String.raw`(&&|\|\||==|!=|<=|>=|[<>+\-*\/%!?:.,()[\]{}])`;
const TOKEN = new RegExp(`${SKIP}(?:${QUOTE}|${DOUBLE}|${INTEGER}|${NAME}|${QUOTED_NAME}|${OPERATOR}|$)`, "y");

export function lex(source: string): Token[] {
  const tokens: Token[] = [];
  const pattern = new RegExp(TOKEN);
  for (;;) {
    const start = pattern.lastIndex;
    const match = pattern.exec(source);
    if (match === null) throw new CelError("syntax", "unexpected character", firstAfterSpace(source, start));
    if (tokens.length >= MAX_TOKENS) throw new CelError("too_long", "the expression has too many parts", start);
    const token = read(source, match, pattern);
    tokens.push(token);
    if (token.kind === "end") return tokens;
  }
}

function read(source: string, match: RegExpExecArray, pattern: RegExp): Token {
  const [, quote, double, integer, unsigned, name, quotedName, operator] = match;
  const end = pattern.lastIndex;
  if (quote !== undefined) {
    const position = end - quote.length;
    const literal = readLiteral(source, quote, end);
    pattern.lastIndex = literal.end;
    return { kind: "literal", position, text: "", value: literal.value };
  }
  if (double !== undefined) {
    return { kind: "double", position: end - double.length, text: double, value: Number(double) };
  }
  if (integer !== undefined) {
    const kind = unsigned === undefined ? "int" : "uint";
    return { kind, position: end - integer.length, text: integer, value: BigInt(integer) };
  }
  if (name !== undefined) {
    // "in" is an operator, except after a dot, where the parser sees to it.
    return { kind: name === "in" ? "in" : "name", position: end - name.length, text: name, value: undefined };
  }
  if (quotedName !== undefined) {
    return { kind: "quoted", position: end - quotedName.length - 2, text: quotedName, value: undefined };
  }
  if (operator !== undefined) {
    return { kind: operator, position: end - operator.length, text: operator, value: undefined };
  }
  if (end < source.length) throw new CelError("syntax", "unexpected character", end);
  return { kind: "end", position: end, text: "", value: undefined };
}

function firstAfterSpace(source: string, from: number): number {
  let at = from;
  while (at < source.length && " \t\r\n\f".includes(source[at] as string)) at++;
  return at;
}

const SIMPLE_ESCAPES: ReadonlyMap<string, string> = new Map([
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["a", "\u0007"],
  ["b", "\b"],
  ["f", "\f"],
  ["v", "\v"],
  ["\\", "\\"],
  ["'", "'"],
  ['"', '"'],
  ["`", "`"],
  ["?", "?"],
]);

/** What makes the value of a literal differ from its text, or ends it early. */
const UNUSUAL = /[\\\r\n]/;

/** Reads a string or bytes literal whose opening quote ends at `start`. */
function readLiteral(source: string, opening: string, start: number): { value: string | Uint8Array; end: number } {
  const end = opening.length === 1 ? source.indexOf(opening, start) : -1;
  if (end >= 0) {
    const text = source.slice(start, end);
    if (!UNUSUAL.test(text)) return { value: text, end: end + 1 };
  }
  return readUnusualLiteral(source, opening, start);
}

function readUnusualLiteral(
  source: string,
  opening: string,
  start: number,
): { value: string | Uint8Array; end: number } {
  const prefix = opening.replace(/["']+$/, "").toLowerCase();
  const quote = opening.slice(prefix.length);
  const raw = prefix.includes("r");
  const bytes = prefix.includes("b");
  const parts: Buffer[] = [];
  let text = "";
  let at = start;
  while (!source.startsWith(quote, at)) {
    const char = source[at];
    if (char === undefined) throw new CelError("syntax", "unterminated string", start - opening.length);
    if (quote.length === 1 && (char === "\n" || char === "\r"))
      throw new CelError("syntax", "line break in string", at);
    if (char === "\\" && !raw) {
      const escape = readEscape(source, at, bytes);
      if (typeof escape.value === "number") {
        parts.push(Buffer.from(text), Buffer.of(escape.value));
        text = "";
      } else text += escape.value;
      at = escape.end;
    } else if (char === "\\" && quote.length === 1 && source[at + 1] !== quote && at + 1 < source.length) {
      text += char + (source[at + 1] as string);
      at += 2;
    } else {
      // Line ends inside triple quotes read as "\n".
      text += char === "\r" ? (source[at + 1] === "\n" ? "" : "\n") : char;
      at++;
    }
  }
  if (!bytes) return { value: text, end: at + quote.length };
  parts.push(Buffer.from(text));
  return { value: new Uint8Array(Buffer.concat(parts)), end: at + quote.length };
}

/** @returns a number for one byte of a bytes literal, text for everything else */
function readEscape(source: string, at: number, bytes: boolean): { value: string | number; end: number } {
  const letter = source[at + 1] ?? "";
  const simple = SIMPLE_ESCAPES.get(letter);
  if (simple !== undefined) return { value: simple, end: at + 2 };
  const octal = letter >= "0" && letter <= "3";
  const digits = octal ? 3 : hexDigits(letter, bytes);
  const from = at + (octal ? 1 : 2);
  const number = source.slice(from, from + digits);
  const valid = octal ? /^[0-7]+$/ : /^[0-9a-fA-F]+$/;
  if (digits === 0 || number.length !== digits || !valid.test(number)) {
    throw new CelError("syntax", "bad escape in string", at);
  }
  const code = Number.parseInt(number, octal ? 8 : 16);
  const end = from + digits;
  if (bytes) return { value: code, end };
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) throw new CelError("syntax", "bad code point", at);
  return { value: String.fromCodePoint(code), end };
}

function hexDigits(letter: string, bytes: boolean): number {
  if (letter === "x" || letter === "X") return 2;
  if (bytes) return 0;
  if (letter === "u") return 4;
  return letter === "U" ? 8 : 0;
}
