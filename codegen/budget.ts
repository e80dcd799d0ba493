/**
 * Keeps a CRD small enough for plain `kubectl apply`, which stores the whole object in an annotation. Descriptions are
 * spent breadth-first: full text near the root, first sentences deeper, none when nothing is left. libraries.md 3.6.
 */
import { mapSchema, type Schema } from "./schema.ts";

/** All annotations of an object may hold 262,144 bytes; the rest is left to the user's own. */
export const CRD_BYTES = 240_000;

/** Levels of fields below the root that keep their full text. */
const FULL_TEXT_DEPTH = 3;

export interface Spending {
  readonly schema: Schema;
  readonly kept: number;
  readonly shortened: number;
  readonly dropped: number;
}

/**
 * @param overhead bytes of the CRD around the schema
 * @param limit bytes of compact JSON
 * @throws when even the schema without descriptions is too large
 */
export function spendDescriptions(name: string, schema: Schema, overhead: number, limit: number = CRD_BYTES): Spending {
  const texts = new Map<Schema, string>();
  const bare = mapSchema(schema, ({ description, ...rest }) => {
    if (description !== undefined) texts.set(rest, description);
    return rest;
  });
  let left = limit - overhead - Buffer.byteLength(JSON.stringify(bare));
  if (left < 0)
    throw new Error(`${name}: the CRD is ${-left} bytes over the limit of ${limit}, without any description`);
  const counts = { kept: 0, shortened: 0, dropped: 0 };
  for (const { node, depth } of breadthFirst(bare)) {
    const full = texts.get(node);
    if (full === undefined) continue;
    const text = depth <= FULL_TEXT_DEPTH ? full : firstSentence(full);
    const cost = Buffer.byteLength(JSON.stringify(text)) + '"description":,'.length;
    if (cost > left) {
      counts.dropped++;
      continue;
    }
    node.description = text;
    left -= cost;
    if (text === full) counts.kept++;
    else counts.shortened++;
  }
  return { schema: bare, ...counts };
}

function firstSentence(text: string): string {
  const end = text.search(/[.](?:\s|$)/);
  return end < 0 ? text : text.slice(0, end + 1);
}

function breadthFirst(root: Schema): { readonly node: Schema; readonly depth: number }[] {
  const order = [{ node: root, depth: 0 }];
  for (const { node, depth } of order) {
    for (const child of Object.values(node.properties ?? {})) order.push({ node: child, depth: depth + 1 });
    if (node.items !== undefined) order.push({ node: node.items, depth });
    if (typeof node.additionalProperties === "object") order.push({ node: node.additionalProperties, depth });
  }
  return order;
}
