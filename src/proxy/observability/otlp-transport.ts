/**
 * Calls of a collector (opentelemetry.io/docs/specs/otlp): gRPC or protobuf over HTTP, through the callouts, so with the
 * settings of the backend it names and in no trace. In: an encoded request. Out: what became of it; never an error.
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
import { ProxyError } from "../errors.ts";
import type { Abortable } from "../pipeline/exchange.ts";

/** One kind of record: how a collector is called with it, and how many of them its answer refuses. */
export interface Signal<I extends DescMessage, O extends DescMessage> {
  readonly method: DescMethodUnary<I, O>;
  readonly rejectedOf: (answer: MessageShape<O>) => { readonly rejected: bigint; readonly message: string };
}

const HEADERS = ["content-type", "application/x-protobuf"];
/** Beside these no status means that the same request can be taken another time. */
const LATER_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const DETAILS = "grpc-status-details-bin";

/** Calls of collectors that are under way: no exchange ends them. */
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

/** @returns one try */
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
    // The status says that it is taken; some receivers answer with other words.
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
  // With a status the cause is what the library says.
  if (error.grpcStatus !== undefined) return failedCall(error.cause as ServiceError, reason);
  // Whether it was taken is not known, so it is not sent twice.
  const timedOut = error.cause instanceof ProxyError && error.cause.code === "backend_timeout";
  return timedOut ? { kind: "refused", reason } : { kind: "later", reason, afterMs: undefined };
}

function failedCall({ code, metadata }: ServiceError, reason: string): ExportOutcome {
  const afterMs = askedWaitMs(metadata);
  const isLater = code === status.UNAVAILABLE || (code === status.RESOURCE_EXHAUSTED && afterMs !== undefined);
  return isLater ? { kind: "later", reason, afterMs } : { kind: "refused", reason };
}

/** What a RetryInfo among the details of a status says. */
function askedWaitMs(metadata: ServiceError["metadata"]): number | undefined {
  const [bytes] = metadata.get(DETAILS);
  if (!(bytes instanceof Buffer)) return undefined;
  try {
    for (const detail of fromBinary(StatusSchema, bytes).details) {
      const delay = anyUnpack(detail, RetryInfoSchema)?.retryDelay;
      if (delay !== undefined) return Number(delay.seconds) * 1000 + delay.nanos / 1_000_000;
    }
  } catch {
    // Not as specified: as if it were not there.
  }
  return undefined;
}
