/**
 * Converts between IR resources and xDS resources, and defines the order in which types are sent. Client and server use
 * it. In: resources of `src/ir`. Out: named, versioned Any messages. Versions are made in `src/ir`.
 */
import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import {
  ResourceSchema as WireResourceSchema,
  type Resource as WireResource,
} from "../../generated/proto/envoy/service/discovery/v3/discovery_pb.ts";
import { decodeMessage, encodeMessage } from "../ir/encode.ts";
import type { Resource, ResourceMessages, ResourceType } from "../ir/resource.ts";
import { ConfigError, messageOf } from "../lib/errors.ts";

const TYPE_URL_PREFIX = "type.googleapis.com/gwproxy.config.v1.";

/**
 * Order in which types are sent, following make before break (xDS protocol, "Eventual consistency considerations"): a
 * resource is sent before those that refer to it, and removed after them. Policies come before the listeners and routes
 * that they protect, so that nothing is open between two messages.
 */
export const SEND_ORDER: readonly ResourceType[] = [
  "Backend",
  "Endpoints",
  "Model",
  "Policy",
  "ModelCatalogSource",
  "Bind",
  "Listener",
  "HttpRoute",
  "TcpRoute",
];

export function typeUrlOf(type: ResourceType): string {
  return TYPE_URL_PREFIX + type;
}

/** @returns undefined for a type that this version does not know */
export function typeOfUrl(typeUrl: string): ResourceType | undefined {
  return SEND_ORDER.find((type) => typeUrlOf(type) === typeUrl);
}

/**
 * Cache of encoded messages, which live as long as the message itself. Each further replica would otherwise cost
 * another encoding.
 */
const encoded = new WeakMap<object, Uint8Array>();

export function encodeResource(resource: Resource): WireResource {
  return create(WireResourceSchema, {
    name: resource.key,
    version: resource.version,
    resource: create(AnySchema, { typeUrl: typeUrlOf(resource.type), value: bytesOf(resource) }),
  });
}

function bytesOf({ type, message }: Resource): Uint8Array {
  let bytes = encoded.get(message);
  if (bytes === undefined) {
    bytes = encodeMessage(type, message);
    encoded.set(message, bytes);
  }
  return bytes;
}

/** @throws ConfigError when the bytes are not a message of that type, or the name is not its key */
export function decodeResource(type: ResourceType, wire: WireResource): Resource {
  const { name, version, resource: any } = wire;
  if (any === undefined) throw new ConfigError("the resource is empty");
  if (any.typeUrl !== typeUrlOf(type)) throw new ConfigError(`the resource is of type "${any.typeUrl}"`);
  if (version === "") throw new ConfigError("the resource has no version");
  let message: ResourceMessages[ResourceType];
  try {
    message = decodeMessage(type, any.value);
  } catch (error) {
    throw new ConfigError(`the resource cannot be decoded: ${messageOf(error)}`, { cause: error });
  }
  if (message.key !== name) throw new ConfigError(`the resource calls itself "${message.key}"`);
  // The message was decoded by the schema of `type`; TypeScript does not correlate the two over a union.
  return { type, key: name, version, message } as Resource;
}
