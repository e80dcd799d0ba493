/**
 * The handler of plain HTTP backends, the end of the pipeline: picks an endpoint, places the credential, forwards the
 * request and returns the response. The registry creates it with a `Destination` for a Service, a static or a dynamic
 * backend.
 */
import {
  HttpVersion,
  type BackendSettings,
  type InferencePoolBackend,
  type ServiceBackend,
  type StaticBackend,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../lib/header-list.ts";
import { discard } from "../exchange/discard.ts";
import { ProxyError } from "../exchange/errors.ts";
import { appendPass } from "../exchange/cdn-loop.ts";
import type { RoutedExchange, Reply } from "../exchange/exchange.ts";
import { grpcTimeoutMs, isGrpc } from "../exchange/grpc.ts";
import type { RequestTrace } from "../observability/tracing/request-trace.ts";
import type { AuthCall, SigningScope, UnsignedRequest } from "../upstream/auth.ts";
import { compileAdmission } from "./admission.ts";
import { bodyToSign } from "./auth/body-to-sign.ts";
import { SessionKey } from "../balancing/affinity.ts";
import { Attempt } from "./attempt.ts";
import type { Attribute } from "../../telemetry/attributes.ts";
import { beginCallSpan, type CallHead } from "../observability/tracing/call-span.ts";
import type { PickOptions } from "../balancing/pick.ts";
import { traceSelection } from "../balancing/trace-selection.ts";
import { traceHead, tracePolicies } from "./trace-call.ts";
import { EndpointState, type EndpointSet } from "../balancing/endpoints.ts";
import type { BackendDeps, BackendHandler, EndpointDeps } from "./handler.ts";
import { HealthRule } from "../balancing/health.ts";
import { EndpointPicker } from "./inference-pool/picker.ts";
import { requestSide } from "../policies/ext-proc/messages.ts";
import { isIP } from "node:net";
import { BackendTransformation, type Outgoing } from "./transformation.ts";
import { versionFor } from "../upstream/http-version.ts";
import { sendSigned } from "../upstream/send-signed.ts";
import type { Upstream, UpstreamRequest, UpstreamResponse } from "../upstream/upstream.ts";
import type { UpstreamTarget } from "../upstream/dial/connection-settings.ts";

/** The authority that a request asks for; it has a port unless that is the default of the scheme. */
export type RequestedAuthority = Pick<RoutedExchange, "host" | "scheme">;

/** The destination of the requests of one backend. */
export interface Destination {
  /**
   * Picks an endpoint for a call.
   * @throws ProxyError endpoint_unavailable; also request_invalid and backend_invalid when the request chooses the
   * destination
   */
  pick(pickOptions?: PickOptions, asked?: RequestedAuthority): EndpointState;
  /** Returns all endpoints, for operators; unset where there is no choice. */
  readonly candidates?: () => Iterable<EndpointState>;
  /** Returns the endpoint of this name while the destination has it; unset where there is no choice of endpoints. */
  readonly find?: (name: string) => EndpointState | undefined;
  target(endpoint: EndpointState): UpstreamTarget;
  /** Name for a Host header; undefined when the destination has none. */
  readonly hostname: string | undefined;
  /** Name with port for reports; undefined when only the picked endpoint has one. */
  readonly service: string | undefined;
  /** HTTP version that the destination declares. */
  readonly version: HttpVersion;
  /** True when the authority of the request is the destination. */
  readonly followsRequest: boolean;
  /** Whether the name replaces the client's Host when no policy has decided. */
  readonly rewritesHost: boolean;
  /** What signatures are made for, where the configuration does not say; unset where the destination does not either. */
  readonly signingScope?: SigningScope;
  /** Whether the name replaces the client's Host whatever a policy has decided. */
  readonly fixesHost?: boolean;
  /** Chooses the endpoints of requests; unset where `pick` does. */
  readonly picker?: EndpointPicker;
  /** Entry for CDN-Loop (RFC 8586); undefined for the name of the product alone. */
  readonly pass: string | undefined;
}

export type DestinationDeps = EndpointDeps & Pick<BackendDeps, "connection" | "owner">;

/** A destination with one address or name. */
export function staticDestination(
  { host, port, unixPath, destinationScope }: StaticBackend,
  settings: BackendSettings,
  { record, connection, owner }: DestinationDeps,
): Destination {
  const plain = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
  const endpoint = new EndpointState(unixPath === "" ? plain : unixPath, port, record);
  const target: UpstreamTarget = { ...connection(settings), host: plain, port, unixPath, owner, destinationScope };
  const family = isIP(plain);
  const spelled = family === 6 ? `[${plain}]` : plain;
  return {
    pick: () => endpoint,
    target: () => target,
    hostname: unixPath === "" ? spelled : undefined,
    service: unixPath === "" ? `${spelled}:${port}` : unixPath,
    version: HttpVersion.UNSPECIFIED,
    followsRequest: false,
    rewritesHost: family === 0,
    pass: undefined,
  };
}

/** The endpoints of a Service port. TLS settings without SNI check the name of the Service in certificates. */
export function serviceDestination(
  set: EndpointSet,
  { hostname, port, version }: Pick<ServiceBackend, "hostname" | "port" | "version">,
  settings: BackendSettings,
  pickDeps: DestinationDeps,
): Destination {
  const connection = pickDeps.connection(settings);
  return {
    pick(pickOptions) {
      const endpoint = set.pick(pickDeps, pickOptions);
      if (endpoint === undefined) throw new ProxyError("endpoint_unavailable");
      return endpoint;
    },
    candidates: () => set.all,
    find: (name) => set.find(name),
    target: (endpoint) => endpoint.target(connection, hostname),
    hostname: hostname === "" ? undefined : hostname,
    service: hostname === "" ? undefined : `${hostname}:${port}`,
    version,
    followsRequest: false,
    rewritesHost: false,
    pass: undefined,
  };
}

/**
 * The endpoints of an InferencePool, which has no name of its own: the client's Host is kept. Its picker chooses among
 * them; `pick` is the choice without it.
 */
export function poolDestination(
  set: EndpointSet,
  { picker, failOpen, unverifiedTls }: InferencePoolBackend,
  settings: BackendSettings,
  deps: DestinationDeps & Pick<BackendDeps, "pickerCallout" | "meter">,
): Destination {
  const nameless = { hostname: "", port: 0, version: HttpVersion.UNSPECIFIED };
  const destination = serviceDestination(set, nameless, settings, deps);
  const { sessionAffinity } = settings;
  const session = sessionAffinity === undefined ? undefined : new SessionKey(sessionAffinity, deps.expression);
  const balance = async (exchange: RoutedExchange): Promise<EndpointState> =>
    destination.pick({ affinity: await session?.of(exchange), tried: exchange.tried });
  const service = deps.pickerCallout(picker, unverifiedTls);
  const { meter, nowMs } = deps;
  const pickerDeps = { service, endpoints: set, balance, meter, nowMs };
  return { ...destination, picker: new EndpointPicker({ failOpen }, pickerDeps) };
}

export function createHttpHandler(
  destination: Destination,
  settings: BackendSettings,
  deps: EndpointDeps & Pick<BackendDeps, "auth" | "callout" | "upstream">,
): BackendHandler {
  const { http: limits, sessionAffinity, transformation: changes } = settings;
  const auth = deps.auth(settings.auth);
  const fixedVersion = limits?.version || destination.version;
  const timeoutMs = limits?.requestTimeoutMs || Infinity;
  const rule = new HealthRule(settings.health, deps);
  const session = sessionAffinity === undefined ? undefined : new SessionKey(sessionAffinity, deps.expression);
  const transformation = changes === undefined ? undefined : new BackendTransformation(changes, deps);
  const { upstream } = deps;
  const passOf = ({ cdnLoop }: RoutedExchange): string => appendPass(cdnLoop, destination.pass);
  // The name that OpenTelemetry has for it; only destinations in a cloud know their region.
  const region = destination.signingScope?.region;
  const attributes: Attribute[] = region === undefined ? [] : [["cloud.region", region]];
  const traced: Trace = (attempt, trace, exchange, head) => {
    const name = `${head.method} ${destination.service ?? exchange.endpoint}`;
    attempt.span = beginCallSpan(trace, exchange, head, { subtype: "Http", name, attributes });
  };
  const open: Send = (exchange, endpoint) => {
    exchange.endpoint = endpoint.name;
    const attempt = new Attempt(exchange, endpoint.record, rule, false);
    const { method, host, trace } = exchange;
    // Raw bytes have no fields for the trace context; the span gets only the host.
    if (trace !== undefined)
      traced(attempt, trace, exchange, { method, path: "/", headers: new HeaderList(["host", host]) });
    return answerOf(
      exchange,
      attempt,
      opened(upstream, destination.target(endpoint), {
        ...limitOf(exchange, timeoutMs, false),
        cdnLoop: exchange.cdnLoop,
      }),
    );
  };
  const call = (exchange: RoutedExchange, endpoint: EndpointState, head: Head): Promise<Reply> => {
    exchange.endpoint = endpoint.name;
    const { method, path, headers, body } = head;
    const grpc = isGrpc(headers);
    const attempt = new Attempt(exchange, endpoint.record, rule, grpc);
    const target = destination.target(endpoint);
    const version = versionFor(exchange, fixedVersion, { grpc, tls: target.tls !== undefined });
    const { upgrade, trace } = exchange;
    if (trace !== undefined) traced(attempt, trace, exchange, { method, path, headers });
    const scheme = head.scheme === exchange.originalScheme ? undefined : head.scheme;
    if (exchange.debug !== undefined) traceHead(exchange.debug, head, auth !== undefined);
    const request = { ...limitOf(exchange, timeoutMs, grpc), version, scheme, method, path, headers, body, upgrade };
    const send = (): Promise<UpstreamResponse> => upstream.send(target, request);
    const answer =
      auth?.sign === undefined
        ? send()
        : sendSigned({ auth, call: callFor(exchange, endpoint), request: toSign(head) }, send, discard);
    return answerOf(exchange, attempt, answer, transformation);
  };
  const callFor = (exchange: RoutedExchange, endpoint: EndpointState): AuthCall => {
    const connection = destination.target(endpoint);
    const host = destination.hostname ?? connection.host;
    return { caller: exchange, host, connection, signingScope: destination.signingScope };
  };
  const transformed = async (
    exchange: RoutedExchange,
    first: EndpointState,
    by: BackendTransformation,
  ): Promise<Reply> => {
    const out = await by.outgoing(exchange, auth, callFor(exchange, first));
    // The transformation may have changed the authority; a destination that follows it has to pick again.
    const endpoint = destination.followsRequest ? destination.pick(undefined, out) : first;
    if (endpoint !== first) auth?.checkDestination?.(callFor(exchange, endpoint));
    const headers = upstreamHeaders(out.headers, authorityOf(out, destination), passOf(exchange));
    const head = { ...out, headers };
    return call(exchange, endpoint, auth?.sign === undefined ? head : await held(exchange, head));
  };
  const authenticated = async (
    exchange: RoutedExchange,
    endpoint: EndpointState,
    placed: string | Promise<string>,
    head: Head,
  ): Promise<Reply> => {
    const ready = { ...head, path: placed instanceof Promise ? await placed : placed };
    return call(exchange, endpoint, auth?.sign === undefined ? ready : await held(exchange, ready));
  };
  const forward: Send = (exchange, endpoint) => {
    if (exchange.connect) return open(exchange, endpoint);
    if (transformation !== undefined) return transformed(exchange, endpoint, transformation);
    const { method, scheme, target, requestBody: body } = exchange;
    const headers = upstreamHeaders(exchange.requestHeaders, authorityOf(exchange, destination), passOf(exchange));
    if (auth === undefined) return call(exchange, endpoint, { method, path: target, scheme, headers, body });
    const path = auth.place(callFor(exchange, endpoint), headers, target);
    if (path instanceof Promise || auth.sign !== undefined)
      return authenticated(exchange, endpoint, path, { method, path: target, scheme, headers, body });
    return call(exchange, endpoint, { method, path, scheme, headers, body });
  };
  const admit = compileAdmission(settings, deps);
  const send: Send =
    admit === undefined ? forward : (exchange, endpoint) => admit(exchange, async () => forward(exchange, endpoint));
  const { picker } = destination;
  if (picker !== undefined) {
    const callPicked = async (exchange: RoutedExchange): Promise<Reply> => {
      if (exchange.connect) throw new ProxyError("backend_unfit", { detail: "CONNECT to an InferencePool" });
      const { reply, own } = await picker.call(exchange, requestSide(exchange), (endpoint) => {
        exchange.tried?.push(endpoint);
        return forward(exchange, endpoint);
      });
      return reply ?? own;
    };
    return admit === undefined ? callPicked : (exchange) => admit(exchange, () => callPicked(exchange));
  }
  return function http(exchange) {
    if (exchange.debug !== undefined) tracePolicies(exchange.debug, settings);
    if (session !== undefined) return callOfSession(exchange, session, { destination, nowMs: deps.nowMs }, send);
    const { tried } = exchange;
    const endpoint = destination.pick(tried === undefined ? undefined : { affinity: undefined, tried }, exchange);
    tried?.push(endpoint);
    if (exchange.debug !== undefined)
      traceSelection(exchange.debug, destination.candidates?.() ?? [endpoint], {
        chosen: endpoint.name,
        nowMs: deps.nowMs(),
      });
    return send(exchange, endpoint);
  };
}

/** Holds the body of a request that will be signed. @throws ProxyError body_too_large */
async function held(exchange: RoutedExchange, head: Head): Promise<Head> {
  return { ...head, body: head.body === null ? null : await bodyToSign(exchange, head.body) };
}

function toSign({ method, path, headers, body }: Head): UnsignedRequest {
  return { method, path, headers, body: Buffer.isBuffer(body) ? body : EMPTY };
}

const EMPTY = Buffer.alloc(0);

/** Opens a raw connection for CONNECT; nothing of the request is sent on it. */
async function opened(
  upstream: Upstream,
  target: UpstreamTarget,
  limits: Parameters<Upstream["open"]>[1],
): Promise<UpstreamResponse> {
  const stream = await upstream.open(target, limits);
  return { status: 200, headers: new HeaderList(), body: null, tunnel: { protocol: "", stream } };
}

type Head = Pick<Outgoing, "method" | "path" | "scheme" | "headers" | "body">;
type Trace = (attempt: Attempt, trace: RequestTrace, exchange: RoutedExchange, head: CallHead) => void;
type Send = (exchange: RoutedExchange, endpoint: EndpointState) => Promise<Reply>;

async function callOfSession(
  exchange: RoutedExchange,
  session: SessionKey,
  { destination, nowMs }: { readonly destination: Destination; readonly nowMs: () => number },
  send: Send,
): Promise<Reply> {
  const key = session.of(exchange);
  const affinity = key instanceof Promise ? await key : key;
  const { tried } = exchange;
  const endpoint = destination.pick({ affinity, tried }, exchange);
  tried?.push(endpoint);
  if (exchange.debug !== undefined)
    traceSelection(exchange.debug, destination.candidates?.() ?? [endpoint], {
      chosen: endpoint.name,
      affinity,
      nowMs: nowMs(),
    });
  return send(exchange, endpoint);
}

/**
 * Returns the limit of one attempt: the shortest of the backend's, the rule's and, for gRPC, the caller's
 * `grpc-timeout`.
 */
function limitOf(
  exchange: RoutedExchange,
  timeoutMs: number,
  grpc: boolean,
): Pick<UpstreamRequest, "deadlineAtMs" | "timeoutCode" | "abort"> {
  const { deadlineAtMs, backendTimeoutMs } = exchange;
  let attemptAtMs = performance.now() + Math.min(backendTimeoutMs ?? Infinity, timeoutMs);
  let timeoutCode: UpstreamRequest["timeoutCode"] = "backend_timeout";
  if (grpc) {
    const callerAtMs = exchange.startedAtMs + (grpcTimeoutMs(exchange.requestHeaders) ?? Infinity);
    if (callerAtMs < attemptAtMs) {
      attemptAtMs = callerAtMs;
      timeoutCode = "grpc_timeout";
    }
  }
  // The deadline of the exchange aborts the call by itself; only a shorter limit needs a timer here.
  if (attemptAtMs >= (deadlineAtMs ?? Infinity))
    return { deadlineAtMs: undefined, timeoutCode: "request_timeout", abort: exchange };
  return { deadlineAtMs: attemptAtMs, timeoutCode, abort: exchange };
}

async function answerOf(
  exchange: RoutedExchange,
  attempt: Attempt,
  call: Promise<UpstreamResponse>,
  transformation?: BackendTransformation,
): Promise<Reply> {
  try {
    const { status, headers, body, tunnel } = await call;
    exchange.debug?.response("raw response", { status, headers });
    if (tunnel !== undefined) exchange.onDone(() => tunnel.stream.destroy());
    const reply = { status, headers, body, tunnel, upstream: true };
    if (transformation !== undefined) {
      attempt.headed(status);
      await transformation.answered(exchange, reply);
    }
    if (attempt.readsBody) await attempt.answeredWithBody(reply);
    else attempt.answered(reply);
    return reply;
  } catch (error) {
    attempt.failed(error);
    throw error;
  }
}

function authorityOf(
  { host, hostChoice }: Pick<RoutedExchange, "host" | "hostChoice">,
  { hostname, rewritesHost, fixesHost }: Destination,
): string {
  const choice = fixesHost === true ? "auto" : (hostChoice ?? (rewritesHost ? "auto" : "keep"));
  return choice === "auto" ? (hostname ?? host) : host;
}

/** Copies the headers for sending: the exchange, which policies read, never holds the credential. */
function upstreamHeaders({ raw, spelling }: HeaderList, host: string, pass: string): HeaderList {
  const out: string[] = ["host", host];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host") continue;
    if (name.length === 8 && name.toLowerCase() === "cdn-loop") continue;
    out.push(name, raw[at + 1] as string);
  }
  out.push("cdn-loop", pass);
  return new HeaderList(out, spelling);
}
