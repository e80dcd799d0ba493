/**
 * The interface of external services (ext_authz, ext_proc, rate limit, …) to the policies that call them, over gRPC or
 * HTTP. Every call is bounded in time and size and is aborted together with its exchange. A failure is a CalloutError,
 * which the policy's failure mode turns into "continue" or "refuse". `createCallouts` implements the interface.
 */
import type { DescMessage, DescMethodBiDiStreaming, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { GwError } from "../../lib/errors.ts";
import type { Encoded } from "../../lib/grpc.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";

/** The exchange that a call is made for: aborting it aborts the call with the same error. */
export interface Caller extends Pick<RoutedExchange, "onAbort"> {
  /** Unset for calls outside of a request, which are not traced. */
  readonly trace?: RoutedExchange["trace"];
  /** Set when an operator follows the request (`/debug/trace`). */
  readonly debug?: RoutedExchange["debug"];
  /** See RoutedExchange: a service may be behind a Gateway whose own policies call it, which would loop. */
  readonly cdnLoop?: RoutedExchange["cdnLoop"];
}

export interface Callout {
  /** Path of the service's URL; "" when it has none. */
  readonly path: string;
  /** Set when the service could not be resolved: the policy then refuses, whatever its failure mode (fail closed). */
  readonly invalidReason: string | undefined;
  /** @throws CalloutError, or the error that the exchange was aborted with */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    message: MessageShape<I> | Encoded,
    caller: Caller,
  ): Promise<MessageShape<O>>;
  /** Opens a stream; later failures arrive at the sink. @throws CalloutError when the stream cannot be opened */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    sink: CalloutSink<MessageShape<O>>,
    caller: Caller,
  ): CalloutStream<MessageShape<I>>;
  /** @throws CalloutError, or the error that the exchange was aborted with */
  http(request: CalloutRequest, caller: Caller): Promise<CalloutAnswer>;
}

export interface CalloutRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Value of Host; undefined for the service's own. */
  readonly authority: string | undefined;
  readonly headers: HeaderList;
  readonly body: Buffer | null;
}

/** The response of an HTTP callout, its body limited to `bodyLimitBytes`. */
export interface CalloutAnswer {
  readonly status: number;
  /** The headers without hop-by-hop and framing fields. */
  readonly headers: HeaderList;
  readonly body: Buffer;
}

export interface CalloutSink<Message> {
  message(message: Message): void;
  /** Called last. @param error undefined when the service closed the stream normally */
  close(error: Error | undefined): void;
  /** Called when the stream accepts messages again after `send` returned false. */
  drain(): void;
}

export interface CalloutStream<Message> {
  /** Time to wait for each response, from the service's own settings; undefined when they set none. */
  readonly patienceMs: number | undefined;
  /** @returns false when the caller should wait for `drain` */
  send(message: Message): boolean;
  /** Resolves when connected, or when connecting has failed; in that case the sink gets the error. */
  connected(): Promise<void>;
  /** Stops the flow of messages to the sink until `resume`. */
  pause(): void;
  resume(): void;
  /** Closes the sending side. */
  end(): void;
  /**
   * Closes the sending side and lets the service end the stream; the sink gets no further call. A stream that the
   * service keeps open is reset after a while. Unlike a reset of each stream, this does not look like an attack to the
   * service: many HTTP/2 servers close connections on which streams are reset too often (CVE-2023-44487).
   */
  leave(): void;
  /** Resets the stream at once; the sink gets no further call. */
  cancel(): void;
}

/** The service could not be called, or its response is unusable. `detail` is for the log. */
export class CalloutError extends GwError {
  readonly code = "callout_failed";
  /**
   * True when the configuration is at fault and not the service; the policy then refuses, whatever its failure mode.
   */
  readonly misconfigured: boolean;
  /** Status code that a gRPC call ended with. */
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
