/**
 * Connects protobuf-es services to grpc-js: it turns a generated DescService into the ServiceDefinition that grpc-js
 * serves and calls. xDS and callouts use it; the methods themselves are implemented there.
 */
import {
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Message,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";

/**
 * @param service any service of generated/proto
 * @returns its methods, keyed by their local names
 */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, methodDefinition(method)]));
}

/** Describes the path of one method and how its messages are serialized. */
export function methodDefinition(method: DescMethod): MethodDefinition<Message | Encoded, Message> {
  const request = codec(method.input);
  const response = codec(method.output);
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
    responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
    requestSerialize: request.serialize,
    requestDeserialize: request.deserialize,
    responseSerialize: response.serialize,
    responseDeserialize: response.deserialize,
  };
}

/** A message that is already serialized. */
export type Encoded = Uint8Array;

interface Codec {
  serialize(message: Message | Encoded): Buffer;
  deserialize(bytes: Buffer): Message;
}

function codec(schema: DescMessage): Codec {
  return {
    serialize(message) {
      const bytes = message instanceof Uint8Array ? message : toBinary(schema, message);
      // grpc-js wants a Buffer: a view of the same memory avoids a copy.
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    },
    deserialize: (bytes) => fromBinary(schema, bytes),
  };
}
