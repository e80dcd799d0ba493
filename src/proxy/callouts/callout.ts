/**
 * What a policy sees of a service outside: one bounded call at a time, over gRPC or HTTP. In: a message. Out: the answer,
 * or a CalloutError, which the policy's own failure mode turns into "go on" or "refuse". A call ends with its exchange.
 */
import type { DescMessage, DescMethodBiDiStreaming, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { GwError } from "../../lib/errors.ts";
import type { Encoded } from "../../lib/grpc.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import type { RoutedExchange } from "../pipeline/exchange.ts";

/** The exchange that a call is made for: when it is given up, so is the call, with the same error. */
export interface Caller extends Pick<RoutedExchange, "onAbort"> {
  /** Unset for calls that are made for no request: they are not traced. */
  readonly trace?: RoutedExchange["trace"];
  /** As of RoutedExchange: a service may be behind a Gateway whose policies ask it. */
  readonly cdnLoop?: RoutedExchange["cdnLoop"];
}

export interface Callout {
  /** Path of the service's URL; "" when it has none. */
  readonly path: string;
  /** Set when the service could not be resolved: nothing may pass, whatever the failure mode. */
  readonly invalidReason: string | undefined;
  /** @throws CalloutError; what the exchange was aborted with */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    message: MessageShape<I> | Encoded,
    caller: Caller,
  ): Promise<MessageShape<O>>;
  /** Opens a stream; failures arrive at the sink. @throws CalloutError when it cannot even be opened */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    sink: CalloutSink<MessageShape<O>>,
    caller: Caller,
  ): CalloutStream<MessageShape<I>>;
  /** @throws CalloutError; what the exchange was aborted with */
  http(request: CalloutRequest, caller: Caller): Promise<CalloutAnswer>;
}

export interface CalloutRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Host to ask for; undefined: that of the service. */
  readonly authority: string | undefined;
  readonly headers: HeaderList;
  readonly body: Buffer | null;
}

/** The body is never longer than what may be held in memory. */
export interface CalloutAnswer {
  readonly status: number;
  /** Fields of the connection and of the framing are gone. */
  readonly headers: HeaderList;
  readonly body: Buffer;
}

export interface CalloutSink<Message> {
  message(message: Message): void;
  /** The last call: the service closed the stream in good order (undefined) or it broke. */
  close(error: Error | undefined): void;
  /** The stream takes more after `send` returned false. */
  drain(): void;
}

export interface CalloutStream<Message> {
  /** How long the service may owe an answer, from its own settings; undefined: they say nothing. */
  readonly patienceMs: number | undefined;
  /** @returns false to wait for `drain` */
  send(message: Message): boolean;
  /** Resolves when there is a connection, or when it is clear that there will be none; then the sink hears why. */
  connected(): Promise<void>;
  /** Stops and starts the flow of messages to the sink. */
  pause(): void;
  resume(): void;
  /** Nothing more will be sent. */
  end(): void;
  /** Ends it at once; the sink hears nothing more. */
  cancel(): void;
}

/** The service could not be asked, or did not answer sensibly. `detail` is for the log. */
export class CalloutError extends GwError {
  readonly code = "callout_failed";
  /** The configuration is at fault and not the service: no failure mode lets anything pass. */
  readonly misconfigured: boolean;
  /** What a call over gRPC ended with. */
  readonly grpcStatus: number | undefined;

  constructor(
    detail: string,
    options: {
      readonly cause?: unknown;
      readonly misconfigured?: boolean;
      readonly grpcStatus?: number | undefined;
    } = {},
  ) {
    super("external service failed", { detail, cause: options.cause });
    this.misconfigured = options.misconfigured ?? false;
    this.grpcStatus = options.grpcStatus;
  }
}
