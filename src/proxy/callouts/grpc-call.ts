/** One gRPC call on a channel: its deadline, its end with the exchange, and what a failure becomes. */
import type { Message } from "@bufbuild/protobuf";
import {
  status,
  type ClientDuplexStream,
  type Metadata,
  type MethodDefinition,
  type ServiceError,
} from "@grpc/grpc-js";
import { CalloutError, type Caller, type CalloutSink, type CalloutStream } from "./callout.ts";
import type { GrpcChannel } from "./grpc-channels.ts";

type Method = MethodDefinition<Message, Message>;

const CONNECT_TIMEOUT_MS = 2_000;

export interface CallOptions {
  readonly metadata: Metadata;
  readonly caller: Caller;
  /** Told once: whether the service did well; undefined when the exchange was given up. */
  readonly settle: (healthy: boolean | undefined) => void;
}

/** @throws CalloutError; what the exchange was aborted with */
export function callUnary(
  channel: GrpcChannel,
  method: Method,
  message: Message,
  options: CallOptions & { readonly timeoutMs: number },
): Promise<Message> {
  return new Promise((resolve, reject) => {
    const { metadata, timeoutMs, caller, settle } = options;
    const client = channel.begin();
    let aborted = false;
    const call = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      message,
      metadata,
      { deadline: Date.now() + timeoutMs },
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

/** @throws CalloutError when too many calls are in flight */
export function openStream(
  channel: GrpcChannel,
  method: Method,
  sink: CalloutSink<Message>,
  options: CallOptions & { readonly patienceMs: number | undefined },
): CalloutStream<Message> {
  const { metadata, caller, patienceMs, settle } = options;
  const client = channel.begin();
  const call: ClientDuplexStream<Message, Message> = client.makeBidiStreamRequest(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
    metadata,
    {},
  );
  const ended = Promise.withResolvers<void>();
  let over = false;
  let healthy: boolean | undefined;
  let failed: ServiceError | undefined;
  const finish = (error: Error | undefined): void => {
    if (over) return;
    over = true;
    ended.resolve();
    sink.close(error);
  };
  call.on("data", (message: Message) => {
    healthy = true;
    if (!over) sink.message(message);
  });
  call.on("drain", () => {
    if (!over) sink.drain();
  });
  call.on("error", (error: ServiceError) => {
    failed = error;
    if (!over) healthy = false;
    finish(failure(error));
  });
  call.on("end", () => undefined);
  call.on("status", ({ code }: { code: status }) => {
    channel.done(outcomeOf(failed));
    settle(healthy);
    if (code === status.OK) finish(undefined);
  });
  caller.onAbort({
    abort(error) {
      finish(error);
      call.cancel();
    },
  });
  return {
    patienceMs,
    send: (message) => over || call.write(message),
    connected: () =>
      Promise.race([
        ended.promise,
        new Promise<void>((resolve) => client.waitForReady(Date.now() + CONNECT_TIMEOUT_MS, () => resolve())),
      ]),
    pause: () => void call.pause(),
    resume: () => void call.resume(),
    end: () => void call.end(),
    cancel() {
      over = true;
      ended.resolve();
      call.cancel();
    },
  };
}

function outcomeOf(error: ServiceError | null | undefined): "answered" | "failed" | "timeout" {
  if (error === null || error === undefined) return "answered";
  return error.code === status.DEADLINE_EXCEEDED ? "timeout" : "failed";
}

function failure(error: ServiceError | null): CalloutError {
  if (error === null) return new CalloutError("the service closed the call without an answer");
  return new CalloutError(`${status[error.code] ?? error.code}: ${error.details}`, { cause: error });
}
