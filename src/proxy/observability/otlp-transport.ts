/**
 * Sends encoded requests to a collector (OTLP, opentelemetry.io/docs/specs/otlp) by gRPC or by protobuf over HTTP.
 * Calls go through the callouts, so they use the settings of the backend they name; they are not traced. The result is
 * an outcome, never an exception.
 */
import { fromBinary, type DescMessage, type DescMethodUnary, type MessageShape } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { status, type ServiceError } from "@grpc/grpc-js";
import { RetryInfoSchema } from "../../../generated/proto/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../generated/proto/google/rpc/status_pb.ts";
import type { OtlpEndpoint } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { messageOf } from "../../lib/errors.ts";
import { HeaderList } from "../../lib/header-list.ts";
import type { ExportOutcome } from "../../telemetry/otlp/exporter.ts";
import { retryAfterMs } from "../upstream/rate-limit-hint.ts";
import { CalloutError, type Callout, type CalloutAnswer, type Caller } from "../callouts/callout.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Abortable } from "../exchange/exchange.ts";

/** One kind of record: the method of its service, and how to read the number of rejected records from the response. */
export interface Signal<I extends DescMessage, O extends DescMessage> {
  readonly method: DescMethodUnary<I, O>;
  readonly rejectedOf: (answer: MessageShape<O>) => { readonly rejected: bigint; readonly message: string };
}

const HEADERS = ["content-type", "application/x-protobuf"];
/** The retryable HTTP status codes (OTLP, "Failures"); every other error is final. */
const LATER_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const DETAILS = "grpc-status-details-bin";

/** Calls in progress. They belong to no exchange, so this set aborts them at shutdown. */
export class OpenCalls {
  readonly #calls = new Set<OpenCall>();

  async during<T>(work: (caller: Caller) => Promise<T>): Promise<T> {
    const call = new OpenCall();
    this.#calls.add(call);
    try {
      return await work(call);
    } finally {
      this.#calls.delete(call);
    }
  }

  abort(): void {
    for (const call of this.#calls) call.abort(new CalloutError("the data plane ends"));
  }
}

class OpenCall implements Caller {
  readonly #targets: Abortable[] = [];

  onAbort(target: Abortable): void {
    this.#targets.push(target);
  }

  abort(error: Error): void {
    for (const target of this.#targets) target.abort(error);
  }
}

/** @returns a function that makes one attempt */
export function transportOf<I extends DescMessage, O extends DescMessage>(
  { http, path }: Pick<OtlpEndpoint, "http" | "path">,
  signal: Signal<I, O>,
  { callout, calls }: { readonly callout: Callout; readonly calls: OpenCalls },
): (request: Buffer) => Promise<ExportOutcome> {
  const send = http
    ? async (request: Buffer, caller: Caller) => answered(await callout.http(post(path, request), caller), signal)
    : async (request: Buffer, caller: Caller) => taken(await callout.unary(signal.method, request, caller), signal);
  return async (request) => {
    try {
      return await calls.during((caller) => send(request, caller));
    } catch (error) {
      return failed(error);
    }
  };
}

function post(path: string, body: Buffer): Parameters<Callout["http"]>[0] {
  return { method: "POST", path, authority: undefined, headers: new HeaderList(HEADERS), body };
}

function answered<I extends DescMessage, O extends DescMessage>(
  { status: code, headers, body }: CalloutAnswer,
  signal: Signal<I, O>,
): ExportOutcome {
  const reason = `HTTP ${code}`;
  if (LATER_STATUSES.has(code))
    return { kind: "later", reason, afterMs: retryAfterMs(headers.get("retry-after"), Date.now()) };
  if (code < 200 || code > 299) return { kind: "refused", reason };
  try {
    return taken(fromBinary(signal.method.output, body), signal);
  } catch {
    // The status reports success; some receivers send a body that is not OTLP.
    return { kind: "taken", rejected: 0, message: "" };
  }
}

function taken<I extends DescMessage, O extends DescMessage>(
  answer: MessageShape<O>,
  { rejectedOf }: Signal<I, O>,
): ExportOutcome {
  const { rejected, message } = rejectedOf(answer);
  return { kind: "taken", rejected: Math.max(0, Number(rejected)), message };
}

function failed(error: unknown): ExportOutcome {
  if (!(error instanceof CalloutError)) return { kind: "refused", reason: messageOf(error) };
  const reason = error.detail ?? error.message;
  if (error.misconfigured) return { kind: "refused", reason };
  // With a status, the cause is the ServiceError of the gRPC library.
  if (error.grpcStatus !== undefined) return failedCall(error.cause as ServiceError, reason);
  // After a timeout the collector may have accepted the request, so it is not sent twice.
  const timedOut = error.cause instanceof ProxyError && error.cause.code === "backend_timeout";
  return timedOut ? { kind: "refused", reason } : { kind: "later", reason, afterMs: undefined };
}

function failedCall({ code, metadata }: ServiceError, reason: string): ExportOutcome {
  const afterMs = askedWaitMs(metadata);
  const isLater = code === status.UNAVAILABLE || (code === status.RESOURCE_EXHAUSTED && afterMs !== undefined);
  return isLater ? { kind: "later", reason, afterMs } : { kind: "refused", reason };
}

/** Reads the delay of a RetryInfo among the details of a status (OTLP, "OTLP/gRPC Throttling"). */
function askedWaitMs(metadata: ServiceError["metadata"]): number | undefined {
  const [bytes] = metadata.get(DETAILS);
  if (!(bytes instanceof Buffer)) return undefined;
  try {
    for (const detail of fromBinary(StatusSchema, bytes).details) {
      const delay = anyUnpack(detail, RetryInfoSchema)?.retryDelay;
      if (delay !== undefined) return Number(delay.seconds) * 1000 + delay.nanos / 1_000_000;
    }
  } catch {
    // Ignore details that are malformed.
  }
  return undefined;
}
