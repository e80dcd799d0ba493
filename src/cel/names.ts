/** Checks of names against the environment, and the messages for those that do not exist. */
import { closest } from "../lib/suggest.ts";
import type { Environment, Shape } from "./environment.ts";
import { CelError } from "./errors.ts";

export function unknownVariable(name: string, environment: Environment, position: number): CelError {
  return new CelError(
    "unknown_variable",
    `unknown variable "${name}"${hint(name, environment.variables.keys())}`,
    position,
  );
}

/** @param name with a leading dot for a method */
export function unknownFunction(name: string, arity: number, environment: Environment, position: number): CelError {
  const keys = [...environment.functions.keys(), ...environment.macros.keys()];
  const plain = name.replace(/^\./, "");
  if (keys.some((key) => key.startsWith(`${name}/`))) {
    return new CelError("unknown_function", `"${plain}" does not take ${arity} argument(s)`, position);
  }
  const known = keys.map((key) => key.replace(/^\./, "").replace(/\/.*$/, ""));
  return new CelError("unknown_function", `unknown function "${plain}"${hint(plain, known)}`, position);
}

/** @throws CelError unknown_variable when a chain names a field that the variable never has */
export function checkFields(
  root: string,
  fields: readonly { readonly name: string | undefined; readonly position: number }[],
  environment: Environment,
): void {
  let shape: Shape | undefined = environment.variables.get(root);
  let path = root;
  for (const { name, position } of fields) {
    // Below the declared fields, and behind a computed index, anything may exist.
    if (shape === undefined || shape === true || name === undefined) return;
    if (!Object.hasOwn(shape, name)) {
      const message = `unknown variable "${path}.${name}"${hint(name, Object.keys(shape), `${path}.`)}`;
      throw new CelError("unknown_variable", message, position);
    }
    path += `.${name}`;
    shape = shape[name];
  }
}

/** Kubernetes spells property names that are no CEL names with these escapes. */
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

function hint(name: string, known: Iterable<string>, prefix = ""): string {
  const meant = closest(name, known);
  return meant === undefined ? "" : `; did you mean \`${prefix}${meant}\`?`;
}
