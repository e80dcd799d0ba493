/** What a name means: the checker and the compiler ask here, so that they cannot differ. */
import { type Node, qualifiedName } from "./ast.ts";
import type { Environment, FunctionEntry } from "./environment.ts";
import { TYPES } from "./values.ts";

/** Names of the variables that an expression itself declares. */
export interface Locals {
  hasLocal(name: string): boolean;
}

export type Meaning =
  | { readonly kind: "local"; readonly name: string }
  /** `fields` are selected from what `name` stands for. */
  | { readonly kind: "variable" | "type"; readonly name: string; readonly fields: readonly string[] };

/**
 * By the first name of each declared variable and type, how many names the longest of them has: most chains of
 * selections can be told from a dotted name without looking each part of them up.
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

/** Whether a chain that starts with `first` and selects fields is longer than every name that starts so. */
export function isLongerThanNames(first: string, length: number, environment: Environment): boolean {
  if (environment.container !== "") return false;
  const longest = declaredIn(environment).get(first);
  return longest !== undefined && length > longest;
}

/** The longest declared name wins. @returns undefined when nothing of that name is declared */
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

/** The dotted name before a call, unless it starts with a local variable. */
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

/** Every spelling under which a name is looked up, the innermost namespace first. */
function candidates(name: string, absolute: boolean, { container }: Environment): string[] {
  if (absolute || container === "") return [name];
  const parts = container.split(".");
  return [...parts.map((_, at) => `${parts.slice(0, parts.length - at).join(".")}.${name}`), name];
}
