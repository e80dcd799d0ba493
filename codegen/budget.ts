/**
 * Keeps a CRD small enough for plain `kubectl apply`, which stores the whole object in an annotation. Descriptions are
 * trimmed by depth: full text near the root, first sentences deeper, none when the budget is used up. emit/crds.ts uses
 * it for the set in crds/; the set in crds/documented/ is not trimmed.
 */
import { mapSchema, type Schema } from "./schema.ts";

/**
 * Kubernetes allows 262,144 bytes for all annotations of an object; the remainder is left to the user's annotations.
 */
const CRD_BYTES = 250_000;

/** Bytes that stay free for the additions of a cluster or a chart to the CRD. */
const FREE_BYTES = 15_000;

/**
 * Levels of fields that always have a description: for GwBackend down to `spec.ai`. Without room for them the build
 * fails.
 */
const REQUIRED_DEPTH = 2;

/** Levels that get their full description before a deeper level gets any. */
const FULL_TEXT_DEPTH = 3;

const DESCRIPTION_BYTES = '"description":,'.length;

export interface TrimmedSchema {
  readonly schema: Schema;
  readonly kept: number;
  readonly shortened: number;
  readonly dropped: number;
}

/**
 * Trims the descriptions of a schema to a budget, breadth first.
 *
 * @param overhead bytes of the CRD around the schema
 * @param limit bytes of compact JSON
 * @throws when the schema with the descriptions of the first levels is too large
 */
export function trimDescriptions(
  name: string,
  schema: Schema,
  overhead: number,
  limit: number = CRD_BYTES - FREE_BYTES,
): TrimmedSchema {
  const texts = new Map<Schema, string>();
  const bare = mapSchema(schema, ({ description, ...rest }) => {
    if (description !== undefined) texts.set(rest, description);
    return rest;
  });
  // Go breadth first, so that fields nearer to the root get their description first.
  const described = breadthFirst(bare).flatMap(({ node, depth }) => {
    const text = texts.get(node);
    return text === undefined ? [] : [{ node, depth, text }];
  });
  const within = (depth: number): typeof described => described.filter((part) => part.depth <= depth);
  for (const { node, text } of within(REQUIRED_DEPTH)) node.description = firstSentence(text);
  let left = limit - overhead - Buffer.byteLength(JSON.stringify(bare));
  if (left < 0)
    throw new Error(
      `${name}: the CRD is ${-left} bytes over the limit of ${limit}, with first sentences at its first ${REQUIRED_DEPTH} levels of fields and no other description`,
    );
  const describe = (node: Schema, text: string): void => {
    const { description } = node;
    const cost = jsonBytes(text) - (description === undefined ? -DESCRIPTION_BYTES : jsonBytes(description));
    if (cost > left) return;
    node.description = text;
    left -= cost;
  };
  for (const { node, text } of within(FULL_TEXT_DEPTH)) describe(node, firstSentence(text));
  for (const { node, text } of within(FULL_TEXT_DEPTH)) describe(node, text);
  for (const { node, text, depth } of described) if (depth > FULL_TEXT_DEPTH) describe(node, firstSentence(text));
  for (const { node, text, depth } of described) if (depth > FULL_TEXT_DEPTH) describe(node, text);
  const count = (has: (now: string | undefined, full: string) => boolean): number =>
    described.filter(({ node, text }) => has(node.description, text)).length;
  return {
    schema: bare,
    kept: count((now, full) => now === full),
    shortened: count((now, full) => now !== undefined && now !== full),
    dropped: count((now) => now === undefined),
  };
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
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
