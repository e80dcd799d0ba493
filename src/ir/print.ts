/**
 * Resources as people may see them: plain JSON with secrets masked, in stable order. Dumps and golden files use this
 * and nothing else, so that there is one place where a secret could escape.
 */
import { clone, toJson, type DescMessage, type JsonValue, type Message } from "@bufbuild/protobuf";
import type { ApiKey, BackendTls, Credential } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { toHex } from "../lib/sha256.ts";
import { RESOURCE_SCHEMAS } from "./encode.ts";
import type { Resource } from "./resource.ts";
import { visit } from "./visit.ts";

const MASK = "<masked>";

/** The message of a resource as JSON, without its secrets. */
export function printable(resource: Resource): JsonValue {
  const schema: DescMessage = RESOURCE_SCHEMAS[resource.type];
  const message: Message = clone(schema, resource.message);
  const shortened: string[] = [];
  visit(schema, message, (node) => {
    const hash = mask(node);
    if (hash !== undefined) shortened.push(hash);
  });
  return withHashes(toJson(schema, message), shortened.values());
}

/** By type, then key. */
export function byTypeAndKey(a: Resource, b: Resource): number {
  if (a.type !== b.type) return a.type < b.type ? -1 : 1;
  return a.key < b.key ? -1 : Number(a.key > b.key);
}

/** Hides secrets in place. @returns what may be shown of a key's hash */
function mask(node: Message): string | undefined {
  if (isType<Credential>(node, "Credential")) {
    if (node.value !== "") node.value = MASK;
  } else if (isType<BackendTls>(node, "BackendTls")) {
    if (node.privateKeyPem !== "") node.privateKeyPem = MASK;
  } else if (isType<ApiKey>(node, "ApiKey")) {
    // A weak key can be guessed from its whole hash; a few digits are enough to tell keys apart.
    return `${toHex(node.sha256.subarray(0, 4))}…`;
  }
  return undefined;
}

function isType<T extends Message>(node: Message, name: string): node is T {
  return node.$typeName === `gwproxy.config.v1.${name}`;
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
