/** The server side of the gRPC interoperability test cases, on grpc-js. */
import type { Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import {
  Metadata,
  status,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import {
  EmptySchema,
  SimpleResponseSchema,
  StreamingInputCallResponseSchema,
  StreamingOutputCallResponseSchema,
  type EchoStatus,
  type SimpleRequest,
  type StreamingInputCallRequest,
  type StreamingOutputCallRequest,
} from "../../../generated/proto/grpc/testing/test_pb.ts";
import { documents, gatewayOf } from "../gateway/gateway.ts";

/**
 * Returns a Gateway with plain text (8080) and the Secret `a` (8443), and a route to the GwBackend `interop`.
 * @param matches member of the rule in flow YAML followed by a comma; "" for every call
 */
export function interopObjects(matches = ""): string {
  const gateway = gatewayOf([
    "{name: http, port: 8080, protocol: HTTP}",
    "{name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}",
  ]);
  return documents(
    gateway,
    `
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: interop}
spec:
  parentRefs: [{name: gw}]
  rules: [{${matches}backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: interop}]}]
`,
  );
}

/** Metadata that the server echoes: the first in the headers, the second in the trailers. */
export const INITIAL = "x-grpc-test-echo-initial";
export const TRAILING = "x-grpc-test-echo-trailing-bin";

export interface InteropServer {
  readonly handlers: UntypedServiceImplementation;
  /** Returns the number of calls that their clients have cancelled. */
  cancelled(): number;
}

export function interopServer(): InteropServer {
  let cancelled = 0;
  const note = (call: { on(event: "cancelled", heard: () => void): unknown }): void =>
    void call.on("cancelled", () => cancelled++);
  const handlers: UntypedServiceImplementation = {
    emptyCall: (_call: unknown, done: sendUnaryData<Message>) => done(null, create(EmptySchema)),
    unaryCall(call: ServerUnaryCall<SimpleRequest, Message>, done: sendUnaryData<Message>) {
      const { responseSize, responseStatus } = call.request;
      const trailer = echoMetadata(call);
      if (isFailure(responseStatus)) done({ ...failure(responseStatus), metadata: trailer });
      else done(null, create(SimpleResponseSchema, { payload: { body: new Uint8Array(responseSize) } }), trailer);
    },
    streamingOutputCall(call: ServerWritableStream<StreamingOutputCallRequest, Message>) {
      note(call);
      answer(call, call.request);
      call.end();
    },
    streamingInputCall(call: ServerReadableStream<StreamingInputCallRequest, Message>, done: sendUnaryData<Message>) {
      note(call);
      let size = 0;
      call.on("data", ({ payload }: StreamingInputCallRequest) => (size += payload?.body.length ?? 0));
      call.on("end", () => done(null, create(StreamingInputCallResponseSchema, { aggregatedPayloadSize: size })));
    },
    fullDuplexCall(call: ServerDuplexStream<StreamingOutputCallRequest, Message>) {
      note(call);
      const trailer = echoMetadata(call);
      let failed = false;
      call.on("data", (request: StreamingOutputCallRequest) => {
        if (isFailure(request.responseStatus)) {
          failed = true;
          call.emit("error", { ...failure(request.responseStatus), metadata: trailer });
        } else answer(call, request);
      });
      call.on("end", () => {
        if (!failed) call.end(trailer);
      });
    },
  };
  return { handlers, cancelled: () => cancelled };
}

function isFailure(wanted: EchoStatus | undefined): wanted is EchoStatus {
  return wanted !== undefined && wanted.code !== 0;
}

function failure({ code, message }: EchoStatus): { code: status; details: string } {
  return { code, details: message };
}

function answer(call: { write(message: Message): unknown }, request: StreamingOutputCallRequest): void {
  for (const { size } of request.responseParameters)
    call.write(create(StreamingOutputCallResponseSchema, { payload: { body: new Uint8Array(size) } }));
}

/** @returns the metadata of the trailers */
function echoMetadata(call: { metadata: Metadata; sendMetadata(metadata: Metadata): void }): Metadata {
  const initial = new Metadata();
  for (const value of call.metadata.get(INITIAL)) initial.add(INITIAL, value);
  if (call.metadata.get(INITIAL).length > 0) call.sendMetadata(initial);
  const trailing = new Metadata();
  for (const value of call.metadata.get(TRAILING)) trailing.add(TRAILING, value);
  return trailing;
}
