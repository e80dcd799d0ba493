/**
 * protobuf-es services on grpc-js: one descriptor becomes the table of methods that grpc-js serves and calls.
 * In: a generated DescService. Out: a ServiceDefinition. Not here: what the methods do.
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

/** @param service any service of generated/proto. @returns its methods, keyed by the local name of each */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, methodDefinition(method)]));
}

/** How one method is addressed and how its messages become bytes. */
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

/** A message that is bytes already. */
export type Encoded = Uint8Array;

interface Codec {
  serialize(message: Message | Encoded): Buffer;
  deserialize(bytes: Buffer): Message;
}

function codec(schema: DescMessage): Codec {
  return {
    serialize(message) {
      const bytes = message instanceof Uint8Array ? message : toBinary(schema, message);
      // A view on the same memory: grpc-js wants a Buffer and does not need a copy.
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    },
    deserialize: (bytes) => fromBinary(schema, bytes),
  };
}
