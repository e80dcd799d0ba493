/**
 * The syntax tree that the parser builds, and the checker and the compiler read. Every node stores the depth and the
 * size of its subtree: the parser bounds the depth, and a comprehension charges the size of its body per element.
 */

interface Placed {
  /** Offset of the node in the source, in UTF-16 units. */
  readonly position: number;
  readonly depth: number;
  /** Number of nodes in the subtree, including this one. */
  readonly size: number;
}

export type BinaryOperator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "+" | "-" | "*" | "/" | "%";

interface Constant extends Placed {
  readonly kind: "constant";
  readonly value: unknown;
}

interface Identifier extends Placed {
  readonly kind: "identifier";
  readonly name: string;
  /** True when the name has a leading dot: it then never refers to a local variable. */
  readonly absolute: boolean;
  /** True when the name is in parentheses: it cannot declare an iteration variable then. */
  readonly parenthesised: boolean;
}

export interface Select extends Placed {
  readonly kind: "select";
  readonly operand: Node;
  readonly field: string;
  readonly optional: boolean;
  /** True when the name is in backticks: it is then never part of a qualified name. */
  readonly quoted: boolean;
}

export interface Index extends Placed {
  readonly kind: "index";
  readonly operand: Node;
  readonly index: Node;
  readonly optional: boolean;
}

export interface Call extends Placed {
  readonly kind: "call";
  readonly target: Node | undefined;
  readonly name: string;
  readonly args: readonly Node[];
  readonly absolute: boolean;
}

interface Binary extends Placed {
  readonly kind: "binary";
  readonly operator: BinaryOperator;
  readonly left: Node;
  readonly right: Node;
}

interface Logic extends Placed {
  readonly kind: "and" | "or";
  readonly args: readonly Node[];
}

interface Unary extends Placed {
  readonly kind: "not" | "negate";
  readonly operand: Node;
}

interface Conditional extends Placed {
  readonly kind: "conditional";
  readonly condition: Node;
  readonly consequent: Node;
  readonly otherwise: Node;
}

interface ListLiteral extends Placed {
  readonly kind: "list";
  readonly items: readonly { readonly value: Node; readonly optional: boolean }[];
}

interface MapLiteral extends Placed {
  readonly kind: "map";
  readonly entries: readonly { readonly key: Node; readonly value: Node; readonly optional: boolean }[];
}

export type Node =
  | Constant
  | Identifier
  | Select
  | Index
  | Call
  | Binary
  | Logic
  | Unary
  | Conditional
  | ListLiteral
  | MapLiteral;

/** Computes the depth and size of a node from its children. */
export function extent(children: readonly Node[]): { depth: number; size: number } {
  let depth = 0;
  let size = 1;
  for (const child of children) {
    if (child.depth > depth) depth = child.depth;
    size += child.size;
  }
  return { depth: depth + 1, size };
}

/** Returns the names of a chain `a.b.c`, outermost first; undefined for any other expression. */
export function qualifiedName(node: Node): { names: string[]; absolute: boolean } | undefined {
  const names: string[] = [];
  let at = node;
  while (at.kind === "select" && !at.optional && !at.quoted) {
    names.push(at.field);
    at = at.operand;
  }
  if (at.kind !== "identifier") return undefined;
  names.push(at.name);
  return { names: names.toReversed(), absolute: at.absolute };
}
