/** Reads the names that macros declare as local variables. The checker and the compiler use it. */
import type { Call, Node } from "./ast.ts";
import { CelError } from "./errors.ts";

/** @throws CelError syntax, when the node is not a simple name */
export function variableName(node: Node | undefined): string {
  if (node?.kind !== "identifier" || node.absolute || node.parenthesised) {
    throw new CelError("syntax", "a variable must be a simple name", node?.position ?? 0);
  }
  return node.name;
}

/**
 * Reads the variable names of a comprehension, its first arguments. @throws CelError syntax, when they are not distinct
 * simple names
 */
export function variableNames({ args, position }: Call, count: 1 | 2): string[] {
  const names = args.slice(0, count).map(variableName);
  if (count === 2 && names[0] === names[1]) {
    throw new CelError("syntax", "the two variables need different names", position);
  }
  return names;
}
