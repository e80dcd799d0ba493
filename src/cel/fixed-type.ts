/** JSON does not say whether 1 is an int. Which numbers come from outside, and so may be either, is decided here. */
import type { Node } from "./ast.ts";

const CONVERSIONS: ReadonlySet<string> = new Set(["int", "uint", "double", "size"]);

/** Whether the numeric type is written in the source: only values from outside may mix int and double. */
export function hasFixedType(node: Node): boolean {
  switch (node.kind) {
    case "constant":
      return true;
    case "negate":
      return hasFixedType(node.operand);
    case "binary":
      return hasFixedType(node.left) && hasFixedType(node.right);
    case "conditional":
      return hasFixedType(node.consequent) && hasFixedType(node.otherwise);
    case "call":
      if (node.target !== undefined) return false;
      return node.name === "dyn" ? node.args.every(hasFixedType) : CONVERSIONS.has(node.name);
    default:
      return false;
  }
}
