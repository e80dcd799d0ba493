/**
 * Encodes and decodes IR messages, and derives versions from the bytes. The translator, xDS and the worker threads use
 * it. Encoding is stable: fields are written in the order of their numbers, and the translator inserts map entries in
 * sorted order, so equal content has equal bytes.
 */
import { hash } from "node:crypto";
import { fromBinary, toBinary, type DescMessage } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import {
  BackendSchema,
  BindSchema,
  EndpointsSchema,
  HttpRouteSchema,
  ListenerSchema,
  ModelCatalogSourceSchema,
  ModelSchema,
  PolicySchema,
  TcpRouteSchema,
} from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Resource, ResourceMessages, ResourceType } from "./resource.ts";

export const RESOURCE_SCHEMAS: { readonly [T in ResourceType]: GenMessage<ResourceMessages[T]> } = {
  Bind: BindSchema,
  Listener: ListenerSchema,
  HttpRoute: HttpRouteSchema,
  TcpRoute: TcpRouteSchema,
  Backend: BackendSchema,
  Endpoints: EndpointsSchema,
  Model: ModelSchema,
  Policy: PolicySchema,
  ModelCatalogSource: ModelCatalogSourceSchema,
};

/** Wraps a message with its key and version. */
export function resourceOf<T extends ResourceType>(type: T, message: ResourceMessages[T]): Resource {
  const version = versionOf(encodeMessage(type, message));
  // The signature checks that type and message belong together; the union cannot follow a type parameter.
  return { type, key: message.key, version, message } as unknown as Resource;
}

export function encodeMessage<T extends ResourceType>(type: T, message: ResourceMessages[T]): Uint8Array {
  return toBinary(RESOURCE_SCHEMAS[type] as DescMessage, message);
}

/** @throws Error when the bytes are not a message of this type */
export function decodeMessage<T extends ResourceType>(type: T, bytes: Uint8Array): ResourceMessages[T] {
  // decoded by the schema of `type`
  return fromBinary(RESOURCE_SCHEMAS[type] as DescMessage, bytes) as unknown as ResourceMessages[T];
}

/**
 * Returns a version that changes exactly when the bytes do. It has 64 bits, which is short in dumps; a collision would
 * need billions of versions of one object.
 */
function versionOf(bytes: Uint8Array): string {
  return hash("sha256", bytes).slice(0, 16);
}
