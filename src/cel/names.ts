/**
 * Messages for unknown variables and functions, with a suggestion, and the unescaping of field names. The checker uses
 * both.
 */
import { closest } from "../lib/suggest.ts";
import type { Environment } from "./environment.ts";
import { CelError } from "./errors.ts";

export function unknownVariable(name: string, environment: Environment, position: number): CelError {
  return new CelError(
    "unknown_variable",
    `unknown variable "${name}"${hint(name, environment.variables.keys())}`,
    position,
  );
}

/** @param name starts with a dot for a method */
export function unknownFunction(name: string, arity: number, environment: Environment, position: number): CelError {
  const keys = [...environment.functions.keys(), ...environment.macros.keys()];
  const plain = name.replace(/^\./, "");
  if (keys.some((key) => key.startsWith(`${name}/`))) {
    return new CelError("unknown_function", `"${plain}" does not take ${arity} argument(s)`, position);
  }
  const known = keys.map((key) => key.replace(/^\./, "").replace(/\/.*$/, ""));
  return new CelError("unknown_function", `unknown function "${plain}"${hint(plain, known)}`, position);
}

/** Escapes with which Kubernetes writes property names that are not CEL identifiers (x-kubernetes-validations). */
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["__underscores__", "__"],
  ["__dot__", "."],
  ["__dash__", "-"],
  ["__slash__", "/"],
]);
const ESCAPED_KEYWORD =
  /^__(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while)__$/;

export function unescapeField(field: string): string {
  const keyword = ESCAPED_KEYWORD.exec(field);
  if (keyword !== null) return keyword[1] as string;
  return field.replace(/__(?:underscores|dot|dash|slash)__/g, (escape) => ESCAPES.get(escape) ?? escape);
}

/** Returns "; did you mean `x`?", or "". */
export function hint(name: string, known: Iterable<string>, prefix = ""): string {
  const meant = closest(name, known);
  return meant === undefined ? "" : `; did you mean \`${prefix}${meant}\`?`;
}
