/** The names that an expression gives to its own variables. */
import type { Node } from "./ast.ts";
import { CelError } from "./errors.ts";

/** @throws CelError syntax, when it is anything but a simple name */
export function variableName(node: Node | undefined): string {
  if (node?.kind !== "identifier" || node.absolute || node.parenthesised) {
    throw new CelError("syntax", "a variable must be a simple name", node?.position ?? 0);
  }
  return node.name;
}
