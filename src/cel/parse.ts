/**
 * The parser of the expression language: tokens → syntax tree, by recursive descent over the CEL grammar, with
 * precedence climbing for the binary operators. The checker and the compiler read the tree.
 *
 * Expressions come from users, so the length of the source, the nesting of the recursion and the depth of the tree are
 * bounded. Without these bounds a long chain such as `((((…` or `a.b.c…` would exhaust the stack here, or in the
 * recursions over the tree that follow.
 */
import { extent, type BinaryOperator, type Node } from "./ast.ts";
import { CelError } from "./errors.ts";
import { type Token, lex } from "./lexer.ts";
import { Uint, toDouble, toInt } from "./values.ts";

export const MAX_LENGTH = 16_384;
export const MAX_DEPTH = 250;

const RESERVED: ReadonlySet<string> = new Set(
  "as break const continue else for function if import let loop package namespace return var void while".split(" "),
);
/** Precedence of the binary operators; a higher level binds more tightly. */
const LOOSEST = 1;
const LEVELS: ReadonlyMap<string, number> = new Map([
  ...["==", "!=", "<", "<=", ">", ">=", "in"].map((operator) => [operator, LOOSEST] as const),
  ...["+", "-"].map((operator) => [operator, 2] as const),
  ...["*", "/", "%"].map((operator) => [operator, 3] as const),
]);

/** @throws CelError syntax, too_long, too_deep */
export function parse(source: string, options: { readonly optionalSyntax: boolean }): Node {
  if (source.length > MAX_LENGTH) {
    throw new CelError("too_long", `the expression is longer than ${MAX_LENGTH} characters`);
  }
  return new Parser(lex(source), options.optionalSyntax).parseAll();
}

class Parser {
  readonly #tokens: readonly Token[];
  readonly #optionalSyntax: boolean;
  #at = 0;
  #nesting = 0;

  constructor(tokens: readonly Token[], optionalSyntax: boolean) {
    this.#tokens = tokens;
    this.#optionalSyntax = optionalSyntax;
  }

  parseAll(): Node {
    const node = this.#expression();
    this.#expect("end");
    return node;
  }

  get #token(): Token {
    // The last token is "end", and the parser never moves past it.
    return this.#tokens[this.#at] as Token;
  }

  #fail(): never {
    const { kind, position } = this.#token;
    const what = kind === "end" ? "the expression ends too early" : "syntax error";
    throw new CelError("syntax", what, position);
  }

  #expect(kind: string): Token {
    const token = this.#token;
    if (token.kind !== kind) this.#fail();
    if (kind !== "end") this.#at++;
    return token;
  }

  #accept(kind: string): boolean {
    if (this.#token.kind !== kind) return false;
    this.#at++;
    return true;
  }

  #acceptOptional(): boolean {
    const { position } = this.#token;
    if (!this.#accept("?")) return false;
    if (!this.#optionalSyntax) throw new CelError("syntax", "optional selection is not available here", position);
    return true;
  }

  /**
   * Rejects a node whose subtree is too deep. #nesting bounds only the recursion of the parser: a chain `a.b.c` is
   * parsed in a loop and is deep nevertheless.
   */
  #bounded<T extends Node>(node: T): T {
    if (node.depth > MAX_DEPTH) throw new CelError("too_deep", "the expression nests too deeply", node.position);
    return node;
  }

  #expression(): Node {
    const { position } = this.#token;
    if (++this.#nesting > MAX_DEPTH) throw new CelError("too_deep", "the expression nests too deeply", position);
    let node = this.#logic("or");
    if (this.#accept("?")) {
      const consequent = this.#logic("or");
      this.#expect(":");
      const otherwise = this.#expression();
      const size = extent([node, consequent, otherwise]);
      node = this.#bounded({ kind: "conditional", condition: node, consequent, otherwise, position, ...size });
    }
    this.#nesting--;
    return node;
  }

  #logic(kind: "or" | "and"): Node {
    const { position } = this.#token;
    const isOr = kind === "or";
    const operator = isOr ? "||" : "&&";
    const first = isOr ? this.#logic("and") : this.#chain(LOOSEST);
    if (this.#token.kind !== operator) return first;
    const args = [first];
    while (this.#accept(operator)) args.push(isOr ? this.#logic("and") : this.#chain(LOOSEST));
    return this.#bounded({ kind, args, position, ...extent(args) });
  }

  /**
   * Parses operands and the binary operators between them that bind at least as tightly as `level` (precedence
   * climbing).
   */
  #chain(level: number): Node {
    let left = this.#unary();
    for (;;) {
      const { kind, position } = this.#token;
      const found = LEVELS.get(kind);
      if (found === undefined || found < level) return left;
      this.#at++;
      const right = this.#chain(found + 1);
      // LEVELS contains only binary operators.
      const operator = kind as BinaryOperator;
      left = this.#bounded({ kind: "binary", operator, left, right, position, ...extent([left, right]) });
    }
  }

  #unary(): Node {
    const { kind: operator, position } = this.#token;
    if (operator !== "!" && operator !== "-") return this.#member();
    let count = 0;
    while (this.#accept(operator)) count++;
    if (count > MAX_DEPTH) throw new CelError("too_deep", "the expression nests too deeply", position);
    const number = this.#token;
    // The sign belongs to the literal: -9223372036854775808 is an int, but 9223372036854775808 alone is out of range.
    const signed = operator === "-" && (number.kind === "int" || number.kind === "double");
    let node = this.#member(signed);
    const kind = operator === "!" ? "not" : "negate";
    for (let left = signed ? count - 1 : count; left > 0; left--) {
      node = this.#bounded({ kind, operand: node, position, ...extent([node]) });
    }
    return node;
  }

  #member(negative = false): Node {
    let node = this.#primary(negative);
    for (;;) {
      const { position } = this.#token;
      if (this.#accept(".")) node = this.#bounded(this.#selection(node, position));
      else if (this.#accept("[")) {
        const optional = this.#acceptOptional();
        const index = this.#expression();
        this.#expect("]");
        const size = extent([node, index]);
        node = this.#bounded({ kind: "index", operand: node, index, optional, position, ...size });
      } else if (this.#token.kind === "{" && (node.kind === "identifier" || node.kind === "select")) {
        throw new CelError("unsupported", "messages cannot be constructed", position);
      } else return node;
    }
  }

  #selection(operand: Node, position: number): Node {
    const optional = this.#acceptOptional();
    const name = this.#token;
    if (name.kind !== "name" && name.kind !== "quoted") this.#fail();
    this.#at++;
    const quoted = name.kind === "quoted";
    if (!optional && !quoted && this.#accept("(")) {
      const args = this.#arguments();
      const size = extent([operand, ...args]);
      return {
        kind: "call",
        target: operand,
        name: name.text,
        args,
        absolute: false,
        position: name.position,
        ...size,
      };
    }
    return { kind: "select", operand, field: name.text, optional, quoted, position, ...extent([operand]) };
  }

  #arguments(): Node[] {
    const args: Node[] = [];
    while (this.#token.kind !== ")") {
      args.push(this.#expression());
      if (!this.#accept(",")) break;
      if (this.#token.kind === ")") this.#fail();
    }
    this.#expect(")");
    return args;
  }

  #primary(negative: boolean): Node {
    const token = this.#token;
    const { position } = token;
    switch (token.kind) {
      case "literal":
        this.#at++;
        return constant(token.value, position);
      case "int":
      case "uint":
      case "double":
        this.#at++;
        return constant(numberLiteral(token, negative), position);
      case "(": {
        this.#at++;
        const node = this.#expression();
        this.#expect(")");
        return node.kind === "identifier" ? { ...node, parenthesised: true } : node;
      }
      case "[":
        this.#at++;
        return this.#list(position);
      case "{":
        this.#at++;
        return this.#map(position);
      default:
        return this.#name(position);
    }
  }

  #list(position: number): Node {
    const items: { value: Node; optional: boolean }[] = [];
    while (this.#token.kind !== "]") {
      const optional = this.#acceptOptional();
      items.push({ optional, value: this.#expression() });
      if (!this.#accept(",")) break;
    }
    this.#expect("]");
    return this.#bounded({ kind: "list", items, position, ...extent(items.map(({ value }) => value)) });
  }

  #map(position: number): Node {
    const entries: { key: Node; value: Node; optional: boolean }[] = [];
    while (this.#token.kind !== "}") {
      const optional = this.#acceptOptional();
      const key = this.#expression();
      this.#expect(":");
      entries.push({ optional, key, value: this.#expression() });
      if (!this.#accept(",")) break;
    }
    this.#expect("}");
    return this.#bounded({
      kind: "map",
      entries,
      position,
      ...extent(entries.flatMap(({ key, value }) => [key, value])),
    });
  }

  #name(position: number): Node {
    const absolute = this.#accept(".");
    const { text } = this.#expect("name");
    if (!absolute) {
      if (text === "true" || text === "false") return constant(text === "true", position);
      if (text === "null") return constant(null, position);
    }
    if (RESERVED.has(text)) throw new CelError("syntax", `"${text}" is a reserved word`, position);
    if (this.#accept("(")) {
      const args = this.#arguments();
      return this.#bounded({ kind: "call", target: undefined, name: text, args, absolute, position, ...extent(args) });
    }
    return { kind: "identifier", name: text, absolute, parenthesised: false, position, depth: 1, size: 1 };
  }
}

function constant(value: unknown, position: number): Node {
  return { kind: "constant", value, position, depth: 1, size: 1 };
}

function numberLiteral({ kind, value, position }: Token, negative: boolean): unknown {
  if (typeof value === "number") return toDouble(negative ? -value : value);
  if (typeof value !== "bigint") throw new CelError("syntax", "not a number", position);
  if (kind === "uint") {
    if (value > 18446744073709551615n) throw new CelError("syntax", "uint out of range", position);
    return new Uint(value);
  }
  const signed = negative ? -value : value;
  if (signed > 9223372036854775807n || signed < -9223372036854775808n) {
    throw new CelError("syntax", "int out of range", position);
  }
  return toInt(signed);
}
