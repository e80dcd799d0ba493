/**
 * Writes rules.ts: for each component its rules and the components with rules below it, so that admission visits only
 * what is present in an object. The one-of family is plain data instead of CEL.
 */
import type { SchemaGraph } from "../graph.ts";
import { oneOfs, otherRules, type OneOf } from "../lower.ts";
import { header, literal } from "../print.ts";
import type { CelRule, Schema } from "../schema.ts";

interface Node {
  readonly type: string;
  readonly rules?: readonly CelRule[];
  readonly oneOf?: readonly OneOf[];
  /** Each value is an expression in the generated file: a literal, or the name of another node. */
  readonly fields?: Readonly<Record<string, string>>;
  readonly items?: string;
  readonly values?: string;
}

/** @param roots component of each root object by "group/Kind" */
export function emitRules(graph: SchemaGraph, roots: ReadonlyMap<string, string>): string {
  const written = new Map<string, string>();
  const none = new Set<string>();
  /** @returns the expression for the node of a schema; undefined when neither it nor a part of it has a rule */
  const nodeOf = (schema: Schema, indent: string): string | undefined => {
    if (schema.$ref !== undefined) return siteNode(schema, componentNode(schema.$ref), indent);
    const fields: [string, string][] = [];
    for (const [name, child] of Object.entries(schema.properties ?? {})) {
      const node = nodeOf(child, `${indent}    `);
      if (node !== undefined) fields.push([name, node]);
    }
    const rules = otherRules(schema);
    const counts = oneOfs(schema);
    const items = schema.items === undefined ? undefined : nodeOf(schema.items, `${indent}  `);
    const values =
      typeof schema.additionalProperties === "object" ? nodeOf(schema.additionalProperties, `${indent}  `) : undefined;
    if (fields.length + rules.length + counts.length === 0 && items === undefined && values === undefined)
      return undefined;
    return print(
      {
        type: typeOf(schema),
        ...(rules.length > 0 ? { rules } : {}),
        ...(counts.length > 0 ? { oneOf: counts } : {}),
        ...(fields.length > 0 ? { fields: Object.fromEntries(fields) } : {}),
        ...(items === undefined ? {} : { items }),
        ...(values === undefined ? {} : { values }),
      },
      indent,
    );
  };
  /** Adds the rules of a use, such as immutability, to those of the component. */
  const siteNode = (site: Schema, node: string | undefined, indent: string): string | undefined => {
    const { $ref, ...rest } = site;
    const rules = otherRules(rest);
    if (rules.length === 0) return node;
    const type = typeOf(graph.get($ref ?? "").schema);
    const text = print({ type, rules }, indent);
    return node === undefined
      ? text
      : `{ ...${node}, rules: [...(${node}.rules ?? []), ...${literal(rules, 2, indent)}] }`;
  };
  const componentNode = (name: string): string | undefined => {
    if (written.has(name)) return name;
    if (none.has(name)) return undefined;
    const node = nodeOf(graph.get(name).schema, "");
    if (node === undefined) none.add(name);
    else written.set(name, node);
    return node === undefined ? undefined : name;
  };
  const table = [...roots].flatMap(([key, component]) => {
    const node = componentNode(component);
    return node === undefined ? [] : [`  ${JSON.stringify(key)}: ${node},\n`];
  });
  const nodes = [...written].map(([name, node]) => `\nconst ${name}: RuleNode = ${node};\n`);
  return `${header("//", "crds/schemas")}${TYPES}${nodes.join("")}
/** By "group/Kind". A kind without rules is missing. */
export const RULES: Readonly<Record<string, RuleNode>> = {
${table.join("")}};
`;
}

/** Returns the type as the API server prints it before the message of a rule; int-or-string has none. */
function typeOf(schema: Schema): string {
  return schema.type ?? (schema["x-kubernetes-int-or-string"] === true ? "" : "object");
}

function print({ type, rules, oneOf, fields, items, values }: Node, indent: string): string {
  const inner = `${indent}  `;
  const lines = [`type: ${JSON.stringify(type)}`];
  if (rules !== undefined) lines.push(`rules: ${literal(rules, 2, inner)}`);
  if (oneOf !== undefined) lines.push(`oneOf: ${literal(oneOf, 2, inner)}`);
  if (fields !== undefined) {
    const members = Object.entries(fields).map(([name, node]) => `${inner}  ${JSON.stringify(name)}: ${node},\n`);
    lines.push(`fields: {\n${members.join("")}${inner}}`);
  }
  if (items !== undefined) lines.push(`items: ${items}`);
  if (values !== undefined) lines.push(`values: ${values}`);
  return `{\n${lines.map((line) => `${inner}${line},\n`).join("")}${indent}}`;
}

const TYPES = `
export interface Rule {
  /** CEL expression over \`self\` and, in transition rules, \`oldSelf\`. */
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  /** ".a.b", relative to the value that the rule validates. */
  readonly fieldPath?: string;
  readonly reason?: string;
  readonly optionalOldSelf?: boolean;
}

/** Limits how many of some fields may be set: a CEL rule as plain data, which is fifty times cheaper to evaluate. */
export interface OneOf {
  readonly kind: "exactly" | "atMost" | "atLeast";
  readonly fields: readonly string[];
  readonly message: string;
}

/** The rules of one component, and the nodes with rules below it. */
export interface RuleNode {
  /** "object", "array", "string", … */
  readonly type: string;
  readonly rules?: readonly Rule[];
  readonly oneOf?: readonly OneOf[];
  readonly fields?: Readonly<Record<string, RuleNode>>;
  readonly items?: RuleNode;
  readonly values?: RuleNode;
}
`;
