/** JSON does not say whether 1 is an int. Which numbers come from outside, and so may be either, is decided here. */
import type { Node } from "./ast.ts";
import { TIME_PARTS } from "./functions/time.ts";

const CONVERSIONS: ReadonlySet<string> = new Set(["int", "uint", "double", "size"]);
/** Methods that yield an int, whatever they are called on. */
const COUNTS: ReadonlySet<string> = new Set(["size", "indexOf", "lastIndexOf", ...TIME_PARTS]);

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
      if (node.target !== undefined) return COUNTS.has(node.name);
      return node.name === "dyn" ? node.args.every(hasFixedType) : CONVERSIONS.has(node.name);
    default:
      return false;
  }
}
