/**
 * Prints resources for people, as plain JSON in stable order with secrets masked. Dumps and golden files use only this
 * function, so that there is a single place where a secret could leak.
 */
import {
  clone,
  isFieldSet,
  ScalarType,
  toJson,
  type DescMessage,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import type { ApiKey } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { RESOURCE_SCHEMAS } from "./encode.ts";
import type { Resource } from "./resource.ts";

const MASK = "<redacted>";

/** Returns the message of a resource as JSON without its secrets. */
export function printable(resource: Resource): JsonValue {
  const schema: DescMessage = RESOURCE_SCHEMAS[resource.type];
  const message: Message = clone(schema, resource.message);
  const shortened: string[] = [];
  visit(schema, message, (node, desc) => {
    mask(node, desc);
    if (isApiKey(node)) shortened.push(shortHash(node));
  });
  return withHashes(toJson(schema, message), shortened.values());
}

/** Compares resources by type, then by key. */
export function byTypeAndKey(a: Resource, b: Resource): number {
  if (a.type !== b.type) return a.type < b.type ? -1 : 1;
  return a.key < b.key ? -1 : Number(a.key > b.key);
}

/** Masks, in place, every field that ir.proto marks with `debug_redact`. */
function mask(node: Message, { fields }: DescMessage): void {
  for (const field of fields) {
    if (field.proto.options?.debugRedact !== true || !isFieldSet(node, field)) continue;
    if (field.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING)
      throw new Error(`${field.toString()} is marked debug_redact, but only text can be masked`);
    reflect(field.parent, node).set(field, MASK);
  }
}

function isApiKey(node: Message): node is ApiKey {
  return node.$typeName === "gwproxy.config.v1.ApiKey";
}

/**
 * Returns the first digits of the hash, which are enough to distinguish keys. The whole hash would allow guessing a
 * weak key.
 */
function shortHash({ sha256 }: ApiKey): string {
  return `${Buffer.from(sha256.subarray(0, 4)).toString("hex")}…`;
}

/** Replaces the base64 hashes in the JSON by the shortened ones; both walks meet the keys in the same order. */
function withHashes(value: JsonValue, hashes: Iterator<string>): JsonValue {
  if (Array.isArray(value)) return value.map((item) => withHashes(item, hashes));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      name === "sha256" ? (hashes.next().value as string) : withHashes(member, hashes), // one hash per key, see mask
    ]),
  );
}

type Visitor = (message: Message, schema: DescMessage) => void;

/**
 * Visits every message inside a message, outermost first. The walk follows the descriptors of ir.proto, so a new message
 * type cannot be forgotten.
 */
function visit(schema: DescMessage, message: Message, visitor: Visitor): void {
  walk(reflect(schema, message), visitor);
}

function walk(node: ReflectMessage, visitor: Visitor): void {
  visitor(node.message, node.desc);
  for (const field of node.desc.fields) {
    if (!isFieldSet(node.message, field)) continue;
    if (field.fieldKind === "message") walk(node.get(field), visitor);
    else if (field.fieldKind === "list" && field.listKind === "message")
      for (const item of node.get(field)) walk(item as ReflectMessage, visitor); // a list of messages by listKind
    else if (field.fieldKind === "map" && field.mapKind === "message")
      // a map of messages by mapKind
      for (const item of node.get(field).values()) walk(item as ReflectMessage, visitor);
  }
}
