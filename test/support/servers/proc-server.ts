/** An external processor (Envoy ext_proc v3 over gRPC) whose answer to each message a test decides. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import {
  ExternalProcessor,
  ProcessingResponseSchema,
  type ProcessingRequest,
  type ProcessingResponse,
} from "../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { startGrpc, type GrpcOptions, type GrpcServer } from "./grpc.ts";
import type { ProofContext } from "../proofs/prove.ts";

export type ProcAnswer = MessageInitShape<typeof ProcessingResponseSchema>;
export type Stream = ServerDuplexStream<ProcessingRequest, ProcessingResponse>;
/** Returns the answer to a message; with undefined the processor does not answer yet. */
export type Decide = (message: ProcessingRequest, stream: Stream) => ProcAnswer | undefined;

export interface ProcServer extends GrpcServer {
  /** Messages of all streams, oldest first. */
  readonly seen: readonly ProcessingRequest[];
  /** Returns the number of streams opened so far. */
  streams(): number;
  /** Returns the number of streams that the gateway has reset. */
  resets(): number;
}

export interface ProcOptions extends GrpcOptions {
  /** Called when the gateway has closed its side of a stream; by default the processor closes its own. */
  readonly onEnd?: (stream: Stream) => void;
}

export async function startProcServer(
  context: Pick<ProofContext, "after">,
  decide: Decide,
  { onEnd = (stream) => void stream.end(), ...options }: ProcOptions = {},
): Promise<ProcServer> {
  const seen: ProcessingRequest[] = [];
  let streams = 0;
  let resets = 0;
  const process = (stream: Stream): void => {
    streams++;
    stream.on("data", (message: ProcessingRequest) => {
      seen.push(message);
      const answer = decide(message, stream);
      if (answer !== undefined) stream.write(create(ProcessingResponseSchema, answer));
    });
    stream.on("error", () => undefined);
    stream.on("cancelled", () => resets++);
    stream.on("end", () => onEnd(stream));
  };
  const server = await startGrpc(context, ExternalProcessor, { process }, options);
  return { ...server, seen, streams: () => streams, resets: () => resets };
}

const KINDS = {
  requestHeaders: "headers",
  responseHeaders: "headers",
  requestBody: "body",
  responseBody: "body",
  requestTrailers: "trailers",
  responseTrailers: "trailers",
} as const;

/**
 * Returns an answer that continues without a change, in the form that the body mode requires.
 * @param streamed whether bodies are in full-duplex mode
 */
export function pass({ request }: ProcessingRequest, streamed = false): ProcAnswer {
  if (request.case === undefined) return {};
  const kind = KINDS[request.case];
  if (kind === "body" && streamed) {
    // the type follows from the case
    const { body, endOfStream } = request.value as { body: Uint8Array; endOfStream: boolean };
    return answerBody(request.case, body, endOfStream);
  }
  return { response: { case: request.case, value: {} } };
}

/** Returns an answer with a piece of a body in full-duplex mode. */
export function answerBody(kind: string, body: Uint8Array, endOfStream: boolean): ProcAnswer {
  const mutation = { case: "streamedResponse", value: { body, endOfStream } } as const;
  const value = { response: { bodyMutation: { mutation } } };
  return { response: { case: kind === "requestBody" ? "requestBody" : "responseBody", value } };
}

/** Returns the case of each message, with the content of bodies. */
export function outline(messages: readonly ProcessingRequest[]): string[] {
  return messages.map(({ request }) => {
    if (request.case !== "requestBody" && request.case !== "responseBody") return request.case ?? "nothing";
    return `${request.case} ${Buffer.from(request.value.body).toString()}${request.value.endOfStream ? "." : ""}`;
  });
}

export function headerOf(message: ProcessingRequest | undefined, name: string): string | undefined {
  const { request } = message ?? {};
  if (request?.case !== "requestHeaders" && request?.case !== "responseHeaders") return undefined;
  const found = request.value.headers?.headers.find(({ key }) => key === name);
  return found === undefined ? undefined : Buffer.from(found.rawValue).toString();
}
