/**
 * Name resolution: whether a name is a local variable, a variable, a type or a function. The checker and the compiler
 * share it, so that they cannot disagree.
 */
import { type Node, qualifiedName } from "./ast.ts";
import type { Environment } from "./environment.ts";
import type { FunctionEntry } from "./function.ts";
import { TYPES } from "./values.ts";

/** The local variables that the expression itself declares. */
export interface Locals {
  hasLocal(name: string): boolean;
}

export type Meaning =
  | { readonly kind: "local"; readonly name: string }
  /** `fields` are selected from the value of `name`. */
  | { readonly kind: "variable" | "type"; readonly name: string; readonly fields: readonly string[] };

/**
 * Cache per environment: for the first name of each declared variable and type, the number of names in the longest one.
 * With it most chains of selections are resolved without a lookup per prefix.
 */
const declared = new WeakMap<Environment["variables"], ReadonlyMap<string, number>>();

function declaredIn({ variables }: Environment): ReadonlyMap<string, number> {
  const known = declared.get(variables);
  if (known !== undefined) return known;
  const lengths = new Map<string, number>();
  for (const name of [...variables.keys(), ...TYPES.keys()]) {
    const parts = name.split(".");
    const [first = ""] = parts;
    lengths.set(first, Math.max(lengths.get(first) ?? 0, parts.length));
  }
  declared.set(variables, lengths);
  return lengths;
}

/** Tells whether a chain of selections is longer than every declared name that begins with `first`. */
export function isLongerThanNames(first: string, length: number, environment: Environment): boolean {
  if (environment.container !== "") return false;
  const longest = declaredIn(environment).get(first);
  return longest !== undefined && length > longest;
}

/**
 * Resolves a name; the longest declared one wins, as cel-spec prescribes. @returns undefined when no prefix is declared
 */
export function meaningOf(
  { names, absolute }: { readonly names: readonly string[]; readonly absolute: boolean },
  environment: Environment,
  locals: Locals,
): Meaning | undefined {
  const [first = ""] = names;
  if (!absolute && locals.hasLocal(first)) return { kind: "local", name: first };
  const isPlain = environment.container === "";
  const longest = isPlain ? Math.min(names.length, declaredIn(environment).get(first) ?? 0) : names.length;
  for (let length = longest; length > 0; length--) {
    for (const name of candidates(names.slice(0, length).join("."), absolute, environment)) {
      const fields = names.slice(length);
      if (environment.variables.has(name)) return { kind: "variable", name, fields };
      if (TYPES.has(name)) return { kind: "type", name, fields };
    }
  }
  return undefined;
}

/** Returns the dotted name before a call, unless it begins with a local variable. */
export function namespaceOf(
  target: Node,
  locals: Locals,
): { readonly names: readonly string[]; readonly absolute: boolean } | undefined {
  const name = qualifiedName(target);
  if (name === undefined) return undefined;
  return name.absolute || !locals.hasLocal(name.names[0] as string) ? name : undefined;
}

export function functionOf(
  name: string,
  arity: number,
  absolute: boolean,
  environment: Environment,
): FunctionEntry | undefined {
  for (const candidate of candidates(name, absolute, environment)) {
    const found = environment.functions.get(`${candidate}/${arity}`) ?? environment.functions.get(`${candidate}/*`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the full names to look up, the innermost namespace first (cel-spec "Name Resolution"). */
function candidates(name: string, absolute: boolean, { container }: Environment): string[] {
  if (absolute || container === "") return [name];
  const parts = container.split(".");
  return [...parts.map((_, at) => `${parts.slice(0, parts.length - at).join(".")}.${name}`), name];
}
