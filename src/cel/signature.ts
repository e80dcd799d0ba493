/**
 * Parses the signature notation of functions and types, in which all function tables and variables are declared:
 *
 * size(string | list<A>): int               a function; a union stands for one overload per member
 * .startsWith(string, string): bool         a method, with its receiver as the first parameter
 * math.least(int | double...): dyn          any number of arguments
 *
 * A single capital letter is a type variable, and N is one any number type. A semicolon separates overloads that differ
 * in more than a union can express.
 */
import { type CelType, HEADERS, SHORT_NAMES, named } from "./types.ts";

export interface Overload {
  readonly parameters: readonly CelType[];
  /** Types that each further argument may have; undefined when the number of arguments is fixed. */
  readonly further: readonly CelType[] | undefined;
  readonly result: CelType;
  /** Whether the overload has type variables, which each call binds for itself. */
  readonly isGeneric: boolean;
}

export interface Signature {
  /** "name/arity" for functions, ".name/arity" for methods, "name/*" for any number of arguments. */
  readonly key: string;
  readonly overloads: readonly Overload[];
}

const NUMBERS: readonly string[] = ["int", "uint", "double"];

/** @throws Error when a signature in this module is malformed */
export function parseSignature(text: string): Signature {
  const all = text.split(";").map((part) => new Notation(part).signature());
  const [first] = all;
  if (first === undefined || all.some(({ key }) => key !== first.key)) throw new Error(`bad signature: ${text}`);
  return { key: first.key, overloads: all.flatMap(({ overloads }) => overloads) };
}

/** @throws Error when a type in this module is malformed */
export function parseType(text: string): CelType {
  return new Notation(text).onlyType();
}

class Notation {
  readonly #text: string;
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = text.match(/\.\.\.|\.?[\w.]*\w|[<>(),|:]/g) ?? [];
  }

  onlyType(): CelType {
    const type = this.#type();
    if (this.#at < this.#tokens.length) this.#fail();
    return type;
  }

  signature(): Signature {
    const name = this.#next();
    this.#expect("(");
    const parameters: (readonly CelType[])[] = [];
    let further: readonly CelType[] | undefined;
    while (this.#tokens[this.#at] !== ")") {
      const union = this.#union();
      if (this.#accept("...")) further = union;
      else parameters.push(union);
      if (!this.#accept(",")) break;
    }
    this.#expect(")");
    this.#expect(":");
    const result = this.onlyType();
    const arity = further === undefined ? String(parameters.length - Number(name.startsWith("."))) : "*";
    const overloads = product(parameters)
      .flatMap((chosen) => numeric({ parameters: chosen, further, result, isGeneric: false }))
      .map((overload) => ({
        ...overload,
        isGeneric: [overload.result, ...overload.parameters].some(mentionsVariable),
      }));
    return { key: `${name}/${arity}`, overloads };
  }

  #union(): CelType[] {
    const union = [this.#type()];
    while (this.#accept("|")) union.push(this.#type());
    return union;
  }

  #type(): CelType {
    const name = this.#next();
    if (name === "headers") return HEADERS;
    if (/^[A-Z]$/.test(name)) return { kind: "variable", name };
    const parameters: CelType[] = [];
    if (this.#accept("<")) {
      do parameters.push(this.#type());
      while (this.#accept(","));
      this.#expect(">");
    }
    return named(SHORT_NAMES.get(name) ?? name, ...parameters);
  }

  #next(): string {
    const token = this.#tokens[this.#at++];
    if (token === undefined || !/\w/.test(token)) this.#fail();
    return token;
  }

  #accept(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at++;
    return true;
  }

  #expect(token: string): void {
    if (!this.#accept(token)) this.#fail();
  }

  #fail(): never {
    throw new Error(`bad signature: ${this.#text}`);
  }
}

/** Returns every choice of one member per union (Cartesian product). */
function product(unions: readonly (readonly CelType[])[]): CelType[][] {
  return unions.reduce<CelType[][]>((all, union) => all.flatMap((some) => union.map((type) => [...some, type])), [[]]);
}

/** Replaces N by each number type, which makes one overload per type. */
function numeric(overload: Overload): Overload[] {
  const types = [...overload.parameters, overload.result];
  if (!types.some(mentionsNumber)) return [overload];
  return NUMBERS.map((number) => ({
    ...overload,
    parameters: overload.parameters.map((type) => withNumber(type, number)),
    result: withNumber(overload.result, number),
  }));
}

function mentionsVariable(type: CelType): boolean {
  return type.kind === "variable" || (type.kind === "named" && type.parameters.some(mentionsVariable));
}

function mentionsNumber(type: CelType): boolean {
  if (type.kind === "variable") return type.name === "N";
  return type.kind === "named" && type.parameters.some(mentionsNumber);
}

function withNumber(type: CelType, number: string): CelType {
  if (type.kind === "variable") return type.name === "N" ? named(number) : type;
  if (type.kind === "object") return type;
  return named(type.name, ...type.parameters.map((parameter) => withNumber(parameter, number)));
}
