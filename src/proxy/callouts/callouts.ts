/**
 * Opens external services for policies and exporters: an ExternalService of the configuration becomes a Callout. The
 * call target is looked up for each call, so that a changed backend takes effect at once and no policy is recompiled.
 */
import type {
  DescMessage,
  DescMethod,
  DescMethodBiDiStreaming,
  DescMethodUnary,
  Message,
  MessageShape,
} from "@bufbuild/protobuf";
import type { BackendTls, ExternalService } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { messageOf } from "../../lib/errors.ts";
import { methodDefinition, type Encoded } from "../../lib/grpc.ts";
import { HeaderList } from "../../lib/header-list.ts";
import type { DestinationGuard } from "../upstream/dial/destination-guard.ts";
import type { Resolver } from "../upstream/dial/dns.ts";
import type { CallTarget, Upstream, UpstreamVersion } from "../upstream/upstream.ts";
import { fixedVersion } from "../upstream/http-version.ts";
import { ProxyError } from "../exchange/errors.ts";
import { appendPass } from "../exchange/cdn-loop.ts";
import { pathOf } from "../../lib/network/request-target.ts";
import type { OutboundSubtype } from "../observability/tracing/outbound.ts";
import type { OutboundSpan } from "../observability/tracing/outbound-span.ts";
import type { Carrier } from "../observability/tracing/request-trace.ts";
import type { IdentitySource } from "../spiffe/workload-api.ts";
import {
  CalloutError,
  type Callout,
  type CalloutAnswer,
  type Caller,
  type CalloutRequest,
  type CalloutSink,
  type CalloutStream,
} from "./callout.ts";
import { authenticateGrpc, authenticateHttp, sendAuthenticated, type GrpcAuth } from "./call-auth.ts";
import { callUnary, endGrpcSpan, openStream } from "./grpc-call.ts";
import { GrpcChannels, MAX_IN_FLIGHT, type GrpcChannel } from "./grpc-channels.ts";
import { callHttp, failedCall } from "./http-call.ts";
import { locateService, withDefaultTls, type LocatedService, type PickCallTarget } from "./locate-service.ts";

export interface CalloutsOptions {
  readonly upstream: Upstream;
  /** Resolves names for gRPC, whose connections the upstream client does not make. */
  readonly names: Pick<Resolver, "addresses">;
  readonly guard: DestinationGuard;
  /** Limits the bytes of a response, or of a body inside a message, that are held in memory. */
  readonly bodyLimitBytes: number;
  readonly pickCallTarget: PickCallTarget;
  readonly identities?: IdentitySource;
  /** Called with the duration of each call; undefined when durations are not recorded. */
  readonly onCalled?: ((subtype: OutboundSubtype, seconds: number) => void) | undefined;
}

export interface Callouts {
  /**
   * @param subtype purpose of the calls
   * @param timeoutMs for a response, where the service's settings set no timeout
   * @param tls where the settings of a Backend have no TLS; undefined for plaintext
   */
  // oxlint-disable-next-line max-params -- the last two are defaults
  open(service: ExternalService | undefined, subtype: OutboundSubtype, timeoutMs?: number, tls?: BackendTls): Callout;
  /** Opens a service at a fixed target, with settings of its own. */
  openTarget(target: CallTarget, subtype: OutboundSubtype, timeoutMs: number): Callout;
  /** See Upstream. */
  identityChanged(): void;
  close(): void;
}

/** Default timeout of gRPC and HTTP calls, where the service's own settings set none. */
const CALL_TIMEOUT_MS = 2_000;
/** Allowance for headers, attributes and metadata in addition to the body. */
const MESSAGE_OVERHEAD_BYTES = 1_048_576;

export function createCallouts(options: CalloutsOptions): Callouts {
  const { bodyLimitBytes, names, guard, identities } = options;
  const maxMessageBytes = bodyLimitBytes + MESSAGE_OVERHEAD_BYTES;
  const channels = new GrpcChannels({ maxMessageBytes, names, guard, identities });
  return {
    // oxlint-disable-next-line max-params -- as in the interface
    open: (service, subtype, timeoutMs = CALL_TIMEOUT_MS, tls = undefined) =>
      new ServiceCallout(withDefaultTls(locateService(service, options.pickCallTarget), tls), subtype, {
        ...options,
        channels,
        timeoutMs,
      }),
    openTarget: (target, subtype, timeoutMs) =>
      new ServiceCallout({ path: "", invalidReason: undefined, find: () => target }, subtype, {
        ...options,
        channels,
        timeoutMs,
      }),
    identityChanged: () => channels.identityChanged(),
    close: () => channels.close(),
  };
}

interface ServiceOptions extends CalloutsOptions {
  readonly channels: GrpcChannels;
  readonly timeoutMs: number;
}

/** What became of a call, for operators. */
type CallOutcome = { readonly error: string } | { readonly outcome: string } | { readonly status: number };

class ServiceCallout implements Callout {
  readonly path: string;
  readonly invalidReason: string | undefined;
  readonly #subtype: OutboundSubtype;
  readonly #options: ServiceOptions;
  readonly #find: () => CallTarget;
  #inFlight = 0;

  constructor({ path, invalidReason, find }: LocatedService, subtype: OutboundSubtype, options: ServiceOptions) {
    this.path = path;
    this.invalidReason = invalidReason;
    this.#subtype = subtype;
    this.#options = options;
    this.#find = find;
  }

  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    message: MessageShape<I> | Encoded,
    caller: Caller,
  ): Promise<MessageShape<O>> {
    const { channel, metadata, credentials, http, begin } = this.#connect(caller);
    const timeoutMs = http?.requestTimeoutMs || this.#options.timeoutMs;
    const definition = definitionOf(method);
    const span = this.#traced(caller, grpcName(definition.path), metadata);
    const call = { metadata, credentials, timeoutMs, caller, settle: this.#begin(begin) };
    const show = this.#shown(caller, { method: grpcName(definition.path) });
    try {
      const answer = await callUnary(channel, definition, message, call);
      endGrpcSpan(span);
      show?.({ outcome: "answered" });
      // The method's own schema decoded the response, so it has this type.
      return answer as MessageShape<O>;
    } catch (error) {
      endGrpcSpan(span, error);
      show?.({ error: messageOf(error) });
      throw error;
    }
  }

  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    sink: CalloutSink<MessageShape<O>>,
    caller: Caller,
  ): CalloutStream<MessageShape<I>> {
    const { channel, metadata, credentials, http, begin } = this.#connect(caller);
    // The method's own schema decodes the messages for the sink, so they have its type.
    const untyped = sink as CalloutSink<Message>;
    const patienceMs = http?.requestTimeoutMs || undefined;
    const definition = definitionOf(method);
    const span = this.#traced(caller, grpcName(definition.path), metadata);
    this.#shown(caller, { method: grpcName(definition.path) })?.({ outcome: "stream opened" });
    try {
      const call = { metadata, credentials, caller, patienceMs, settle: this.#begin(begin), span };
      return openStream(channel, definition, untyped, call);
    } catch (error) {
      endGrpcSpan(span, error);
      throw error;
    }
  }

  async http(request: CalloutRequest, caller: Caller): Promise<CalloutAnswer> {
    const { upstream, bodyLimitBytes } = this.#options;
    const found = this.#find();
    const { target, authority, http, begin } = found;
    if (this.#inFlight >= MAX_IN_FLIGHT) throw new CalloutError(`more than ${MAX_IN_FLIGHT} calls in flight`);
    const headers = new HeaderList(["host", request.authority ?? authority, ...request.headers.raw]);
    headers.set("cdn-loop", appendPass(caller.cdnLoop));
    const { method, body } = request;
    const path = await authenticateHttp(found, caller, { path: request.path, headers });
    const deadlineAtMs = performance.now() + (http?.requestTimeoutMs || this.#options.timeoutMs);
    const version: UpstreamVersion = fixedVersion(http?.version) ?? "negotiated";
    const call = {
      version,
      method,
      path,
      headers,
      body,
      deadlineAtMs,
      timeoutCode: "backend_timeout" as const,
      abort: caller,
    };
    const settle = this.#begin(begin);
    const span = this.#traced(caller, `${method} ${withPort(authority, target.port)}`, headers);
    span?.note("http.method", method);
    span?.note("http.host", request.authority ?? authority);
    span?.note("http.path", pathOf(path));
    const show = this.#shown(caller, { method, path: pathOf(path), target: withPort(authority, target.port) });
    let healthy: boolean | undefined;
    this.#inFlight++;
    try {
      const answer = await sendAuthenticated(found, caller, call, () =>
        callHttp(upstream, target, call, bodyLimitBytes),
      );
      healthy = answer.status < 500;
      span?.answered(answer.status);
      show?.({ status: answer.status });
      return answer;
    } catch (error) {
      span?.failed(error);
      show?.({ error: messageOf(error) });
      if (error instanceof CalloutError && !error.misconfigured) healthy = false;
      throw error;
    } finally {
      this.#inFlight--;
      settle(healthy);
      span?.end();
    }
  }

  /** Starts a call for endpoint statistics and metrics. @returns a function to call once, at the end of the call */
  #begin(begin: CallTarget["begin"]): (healthy: boolean | undefined) => void {
    const { onCalled } = this.#options;
    const settle = begin();
    if (onCalled === undefined) return settle;
    const call = new MeasuredCall(settle, onCalled.bind(undefined, this.#subtype));
    return call.settle.bind(call);
  }

  /** Returns a function that shows the outcome to operators; undefined when none follows the request. */
  #shown({ debug }: Caller, asked: object): ((outcome: CallOutcome) => void) | undefined {
    if (debug === undefined) return undefined;
    const startedAtMs = performance.now();
    const kind = this.#subtype;
    return (outcome) => {
      const severity = "error" in outcome ? "error" : "success";
      debug.record({ type: "policyEvent", kind, details: { ...asked, ...outcome } }, { startedAtMs, severity });
    };
  }

  #traced({ trace }: Caller, name: string, carrier: Carrier): OutboundSpan | undefined {
    return trace?.begin({ kind: "Policy", subtype: this.#subtype, name }, carrier);
  }

  #connect(caller: Caller): Pick<CallTarget, "http" | "begin"> & GrpcAuth & { readonly channel: GrpcChannel } {
    const found = this.#find();
    const { target, authority, http, begin } = found;
    try {
      const { metadata, credentials } = authenticateGrpc(found, caller);
      metadata.set("cdn-loop", appendPass(caller.cdnLoop));
      return { channel: this.#options.channels.channel(target, authority), metadata, credentials, http, begin };
    } catch (error) {
      throw error instanceof ProxyError ? failedCall(error) : error;
    }
  }
}

/** Records the duration of a call when it ends. */
class MeasuredCall {
  readonly #startedAtMs: number = performance.now();
  readonly #settle: (healthy: boolean | undefined) => void;
  readonly #count: (seconds: number) => void;

  constructor(settle: (healthy: boolean | undefined) => void, count: (seconds: number) => void) {
    this.#settle = settle;
    this.#count = count;
  }

  settle(healthy: boolean | undefined): void {
    this.#settle(healthy);
    this.#count((performance.now() - this.#startedAtMs) / 1000);
  }
}

/** Adds the port, which span names always contain. */
function withPort(authority: string, port: number): string {
  return /:\d+$/.test(authority) ? authority : `${authority}:${port}`;
}

/** Returns "package.Service/Method" of the path "/package.Service/Method". */
function grpcName(path: string): string {
  return path.slice(1);
}

const definitions = new WeakMap<DescMethod, ReturnType<typeof methodDefinition>>();

function definitionOf(method: DescMethod): ReturnType<typeof methodDefinition> {
  let definition = definitions.get(method);
  if (definition === undefined) definitions.set(method, (definition = methodDefinition(method)));
  return definition;
}
