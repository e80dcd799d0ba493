/**
 * The lexer of the expression language, first step of parse.ts: text → tokens, by the lexical rules of the CEL language
 * definition (cel-spec, "Syntax"). It is a hand-written scanner over character classes; sticky regular expressions read
 * only numbers, quoted names and the openings of literals.
 */
import { CelError } from "./errors.ts";

export interface Token {
  /** The text of an operator or bracket, or one of the classes below. */
  readonly kind: string;
  readonly position: number;
  readonly text: string;
  /** Value of a literal: string or Uint8Array for "literal", number for "double", bigint for "int" and "uint". */
  readonly value: string | Uint8Array | number | bigint | undefined;
}

const MAX_TOKENS = 16_384;
const NUMBER = /(\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)|(0[xX][0-9a-fA-F]+|\d+)([uU])?/y;
const QUOTED_NAME = /`([A-Za-z0-9_.\-/ ]+)`/y;
const OPENING = /(?:[bB][rR]?|[rR][bB]?)?(?:"""|'''|"|')/y;
const LONG_OPERATORS: ReadonlySet<string> = new Set(["&&", "||", "==", "!=", "<=", ">="]);
const SHORT_OPERATORS: ReadonlySet<string> = new Set("<>+-*/%!?:.,()[]{}");

/**
 * Classes of ASCII characters: what a token that starts with the character can be. Characters beyond ASCII may occur
 * only inside literals and comments.
 */
const NAME = 1;
const DIGIT = 2;
const SPACE = 3;
const CLASSES = new Uint8Array(128);
for (const letter of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") CLASSES[letter.charCodeAt(0)] = NAME;
for (const digit of "0123456789") CLASSES[digit.charCodeAt(0)] = DIGIT;
for (const space of " \t\r\n\f") CLASSES[space.charCodeAt(0)] = SPACE;

export function lex(source: string): Token[] {
  const tokens: Token[] = [];
  const lexer = new Lexer(source);
  for (;;) {
    if (tokens.length >= MAX_TOKENS) throw new CelError("too_long", "the expression has too many parts", lexer.at);
    const token = lexer.next();
    tokens.push(token);
    if (token.kind === "end") return tokens;
  }
}

class Lexer {
  readonly #source: string;
  at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  next(): Token {
    this.#skip();
    const position = this.at;
    if (position >= this.#source.length) return token("end", position, "");
    const kind = this.#class(position);
    if (kind === NAME) return this.#literal(position) ?? this.#name(position);
    const char = this.#source[position];
    if (kind === DIGIT || (char === "." && this.#class(position + 1) === DIGIT)) return this.#number(position);
    const read = char === "`" ? this.#quotedName(position) : (this.#operator(position) ?? this.#literal(position));
    if (read === undefined) throw new CelError("syntax", "unexpected character", position);
    return read;
  }

  /** Skips white space and comments. */
  #skip(): void {
    for (;;) {
      while (this.#class(this.at) === SPACE) this.at++;
      if (!this.#source.startsWith("//", this.at)) return;
      const end = this.#source.indexOf("\n", this.at);
      this.at = end < 0 ? this.#source.length : end;
    }
  }

  #class(at: number): number | undefined {
    return CLASSES[this.#source.charCodeAt(at)];
  }

  #match(pattern: RegExp, position: number): RegExpExecArray | undefined {
    pattern.lastIndex = position;
    const match = pattern.exec(this.#source);
    if (match !== null) this.at = pattern.lastIndex;
    return match ?? undefined;
  }

  #name(position: number): Token {
    let end = position + 1;
    for (let kind = this.#class(end); kind === NAME || kind === DIGIT; kind = this.#class(end)) end++;
    this.at = end;
    const text = this.#source.slice(position, end);
    // "in" is an operator, except after a dot, where the parser accepts it as a field name.
    return token(text === "in" ? "in" : "name", position, text);
  }

  #number(position: number): Token {
    const [, double, integer = "", unsigned] = this.#match(NUMBER, position) ?? [];
    if (double !== undefined) return token("double", position, double, Number(double));
    return token(unsigned === undefined ? "int" : "uint", position, integer, BigInt(integer));
  }

  #quotedName(position: number): Token | undefined {
    const name = this.#match(QUOTED_NAME, position)?.[1];
    return name === undefined ? undefined : token("quoted", position, name);
  }

  #operator(position: number): Token | undefined {
    const long = this.#source.slice(position, position + 2);
    const operator = LONG_OPERATORS.has(long) ? long : (this.#source[position] ?? "");
    if (operator.length === 1 && !SHORT_OPERATORS.has(operator)) return undefined;
    this.at = position + operator.length;
    return token(operator, position, operator);
  }

  /** @returns undefined when no string or bytes literal begins here */
  #literal(position: number): Token | undefined {
    const char = this.#source[position];
    if (char !== '"' && char !== "'" && !this.#mayBePrefix(position)) return undefined;
    const opening = this.#match(OPENING, position)?.[0];
    if (opening === undefined) return undefined;
    const { value, end } = readLiteral(this.#source, opening, this.at);
    this.at = end;
    return token("literal", position, "", value);
  }

  /** Rules out most names that begin with b or r by a look at the next characters, before a regular expression runs. */
  #mayBePrefix(position: number): boolean {
    if (!isPrefix(this.#source[position])) return false;
    const next = this.#source[position + 1];
    return isQuote(next) || (isPrefix(next) && isQuote(this.#source[position + 2]));
  }
}

function isPrefix(char: string | undefined): boolean {
  return char === "b" || char === "B" || char === "r" || char === "R";
}

function isQuote(char: string | undefined): boolean {
  return char === '"' || char === "'";
}

function token(kind: string, position: number, text: string, value?: Token["value"]): Token {
  return { kind, position, text, value };
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

/** Matches what makes the value of a literal differ from its text, or ends the literal early. */
const UNUSUAL = /[\\\r\n]/;

/** Reads a string or bytes literal whose opening quote ends at `start`. Most literals are one slice of the source. */
function readLiteral(source: string, opening: string, start: number): { value: string | Uint8Array; end: number } {
  const end = opening.length === 1 ? source.indexOf(opening, start) : -1;
  if (end >= 0) {
    const text = source.slice(start, end);
    if (!UNUSUAL.test(text)) return { value: text, end: end + 1 };
  }
  return readUnusualLiteral(source, opening, start);
}

/**
 * Reads a literal with escapes, a raw one, or one in triple quotes, character by character. A bytes literal collects
 * its text and its escaped bytes as separate parts, because `b"\xff"` is one byte and `b"ÿ"` is the two bytes of UTF-8.
 */
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
      // Every kind of line end inside triple quotes becomes "\n".
      text += char === "\r" ? (source[at + 1] === "\n" ? "" : "\n") : char;
      at++;
    }
  }
  if (!bytes) return { value: text, end: at + quote.length };
  parts.push(Buffer.from(text));
  return { value: new Uint8Array(Buffer.concat(parts)), end: at + quote.length };
}

/** @returns a number for one byte of a bytes literal, a string for everything else */
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
