/**
 * Decides which numbers may be an int or a double. JSON does not distinguish 1 from 1.0, so a number from outside may
 * be either, while a number in the source has a fixed type. The compiler uses it for arithmetic and rounding.
 */
import type { Node } from "../ast.ts";
import { TIME_PARTS } from "../functions/time.ts";

const CONVERSIONS: ReadonlySet<string> = new Set(["int", "uint", "double", "size"]);
/** Methods that return an int for every receiver. */
const COUNTS: ReadonlySet<string> = new Set(["size", "indexOf", "lastIndexOf", ...TIME_PARTS]);

/** Tells whether the numeric type is fixed by the source. Only values from outside may mix int and double. */
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
