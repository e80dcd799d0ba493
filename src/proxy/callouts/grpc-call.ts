/**
 * One gRPC call on a channel, unary or bidirectional streaming, for ServiceCallout: sets the deadline, aborts the call
 * with its exchange, and maps failures to CalloutError.
 *
 * `#over` in GrpcStream marks the end for the sink: an error, an abort, a cancel and the final status may arrive in any
 * order, and `close` is called at most once. The channel slot is released and the endpoint settled on `status`, the
 * last event of every call, also of a cancelled one.
 */
import type { Message } from "@bufbuild/protobuf";
import {
  status,
  type Client,
  type ClientDuplexStream,
  type CallCredentials,
  type Metadata,
  type MethodDefinition,
  type ServiceError,
} from "@grpc/grpc-js";
import type { OutboundSpan } from "../observability/tracing/outbound-span.ts";
import type { Encoded } from "../../lib/grpc.ts";
import { CalloutError, type Caller, type CalloutSink, type CalloutStream } from "./callout.ts";
import type { GrpcChannel } from "./grpc-channels.ts";

type Method = MethodDefinition<Message | Encoded, Message>;

const CONNECT_TIMEOUT_MS = 2_000;
/** Time for a service to end a stream that nothing waits for any more. */
const LEAVE_TIMEOUT_MS = 5_000;

export interface CallOptions {
  readonly metadata: Metadata;
  /** Adds what is not known yet when the call begins. */
  readonly credentials: CallCredentials | undefined;
  readonly caller: Caller;
  /** Called once with the result for the endpoint statistics; undefined when the exchange was aborted. */
  readonly settle: (healthy: boolean | undefined) => void;
}

/** @throws CalloutError, or the error that the exchange was aborted with */
export function callUnary(
  channel: GrpcChannel,
  method: Method,
  message: Message | Encoded,
  options: CallOptions & { readonly timeoutMs: number },
): Promise<Message> {
  return new Promise((resolve, reject) => {
    const { metadata, credentials, timeoutMs, caller, settle } = options;
    const client = begin(channel, settle);
    let aborted = false;
    const call = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      message,
      metadata,
      { deadline: Date.now() + timeoutMs, ...(credentials === undefined ? {} : { credentials }) },
      (error, answer) => {
        channel.done(outcomeOf(error));
        settle(aborted ? undefined : error === null);
        if (answer === undefined) reject(failure(error));
        else resolve(answer);
      },
    );
    caller.onAbort({
      abort(error) {
        aborted = true;
        reject(error);
        call.cancel();
      },
    });
  });
}

/**
 * Starts a call; settles the endpoint also when the call is refused.
 * @throws CalloutError when too many are in flight
 */
function begin(channel: GrpcChannel, settle: CallOptions["settle"]): Client {
  try {
    return channel.begin();
  } catch (error) {
    settle(undefined);
    throw error;
  }
}

/** @throws CalloutError when too many calls are in flight */
export function openStream(
  channel: GrpcChannel,
  method: Method,
  sink: CalloutSink<Message>,
  options: StreamOptions,
): CalloutStream<Message> {
  const stream = new GrpcStream(channel, method, sink, options);
  options.caller.onAbort(stream);
  return stream;
}

interface StreamOptions extends CallOptions {
  readonly patienceMs: number | undefined;
  /** Span of the call; it ends with the stream. */
  readonly span: OutboundSpan | undefined;
}

class GrpcStream implements CalloutStream<Message> {
  readonly patienceMs: number | undefined;
  readonly #channel: GrpcChannel;
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Message | Encoded, Message>;
  readonly #sink: CalloutSink<Message>;
  readonly #settle: CallOptions["settle"];
  readonly #span: OutboundSpan | undefined;
  readonly #ended = Promise.withResolvers<void>();
  #over = false;
  #healthy: boolean | undefined;
  #failed: ServiceError | undefined;

  // oxlint-disable-next-line max-params -- as its only caller has them
  constructor(channel: GrpcChannel, method: Method, sink: CalloutSink<Message>, options: StreamOptions) {
    this.patienceMs = options.patienceMs;
    this.#channel = channel;
    this.#sink = sink;
    this.#settle = options.settle;
    this.#span = options.span;
    this.#client = begin(channel, options.settle);
    const call = this.#client.makeBidiStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      options.metadata,
      options.credentials === undefined ? {} : { credentials: options.credentials },
    );
    call.on("data", this.#received.bind(this));
    call.on("drain", this.#drained.bind(this));
    call.on("error", this.#broke.bind(this));
    call.on("status", this.#finished.bind(this));
    this.#call = call;
  }

  send(message: Message): boolean {
    return this.#over || this.#call.write(message);
  }

  async connected(): Promise<void> {
    const ready = Promise.withResolvers<void>();
    // Resolve in both cases: a failure reaches the sink on its own.
    this.#client.waitForReady(Date.now() + CONNECT_TIMEOUT_MS, ready.resolve.bind(undefined, undefined));
    await Promise.race([this.#ended.promise, ready.promise]);
  }

  pause(): void {
    this.#call.pause();
  }

  resume(): void {
    this.#call.resume();
  }

  end(): void {
    this.#call.end();
  }

  leave(): void {
    if (!this.#channel.leave()) return this.cancel();
    this.#abandon();
    this.#call.end();
    // The status comes after all messages, also those that a paused stream holds back.
    this.#call.resume();
    const reset = setTimeout(() => this.#call.cancel(), LEAVE_TIMEOUT_MS).unref();
    this.#call.once("status", () => {
      clearTimeout(reset);
      this.#channel.left();
    });
  }

  cancel(): void {
    this.#abandon();
    this.#call.cancel();
  }

  #abandon(): void {
    this.#over = true;
    this.#ended.resolve();
    // End the span without an error, because the gateway has ended the stream itself.
    this.#span?.end();
  }

  /** Aborts the call when its exchange is aborted. */
  abort(error: Error): void {
    if (!this.#over) this.#span?.failed(error);
    this.#close(error);
    this.#call.cancel();
  }

  #received(message: Message): void {
    this.#healthy = true;
    if (!this.#over) this.#sink.message(message);
  }

  #drained(): void {
    if (!this.#over) this.#sink.drain();
  }

  #broke(error: ServiceError): void {
    this.#failed = error;
    const failed = failure(error);
    if (!this.#over) {
      this.#healthy = false;
      endGrpcSpan(this.#span, failed);
    }
    this.#close(failed);
  }

  /** Runs on the final status, the last event of every call. */
  #finished({ code }: { readonly code: status }): void {
    this.#channel.done(outcomeOf(this.#failed));
    this.#settle(this.#healthy);
    this.#span?.note("grpc.status", BigInt(code));
    this.#span?.end();
    if (code === status.OK) this.#close(undefined);
  }

  #close(error: Error | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#ended.resolve();
    this.#sink.close(error);
  }
}

/** @param error undefined when the call succeeded */
export function endGrpcSpan(span: OutboundSpan | undefined, error?: unknown): void {
  if (span === undefined) return;
  const code = error === undefined ? 0 : error instanceof CalloutError ? error.grpcStatus : undefined;
  if (code !== undefined) span.note("grpc.status", BigInt(code));
  if (error instanceof CalloutError && code !== undefined) span.broke(status[code] ?? String(code), error.detail);
  else if (error !== undefined) span.failed(error);
  span.end();
}

function outcomeOf(error: ServiceError | null | undefined): "answered" | "failed" | "timeout" {
  if (error === null || error === undefined) return "answered";
  return error.code === status.DEADLINE_EXCEEDED ? "timeout" : "failed";
}

function failure(error: ServiceError | null): CalloutError {
  if (error === null) return new CalloutError("the service closed the call without an answer");
  const { code, details } = error;
  return new CalloutError(`${status[code] ?? code}: ${details}`, { cause: error, grpcStatus: code });
}
