/**
 * Resources as people may see them: plain JSON with secrets masked, in stable order. Dumps and golden files use this
 * and nothing else, so that there is one place where a secret could escape.
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
import { reflect } from "@bufbuild/protobuf/reflect";
import type { ApiKey } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { RESOURCE_SCHEMAS } from "./encode.ts";
import type { Resource } from "./resource.ts";
import { visit } from "./visit.ts";

const MASK = "<masked>";

/** The message of a resource as JSON, without its secrets. */
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

/** By type, then key. */
export function byTypeAndKey(a: Resource, b: Resource): number {
  if (a.type !== b.type) return a.type < b.type ? -1 : 1;
  return a.key < b.key ? -1 : Number(a.key > b.key);
}

/** Hides in place what ir.proto marks `debug_redact`. */
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

/** A weak key can be guessed from its whole hash; a few digits are enough to tell keys apart. */
function shortHash({ sha256 }: ApiKey): string {
  return `${Buffer.from(sha256.subarray(0, 4)).toString("hex")}…`;
}

/** Puts the shortened hashes where JSON has base64; both walks meet the keys in the same order. */
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
