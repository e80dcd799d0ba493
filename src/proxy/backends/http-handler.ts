/** The end of the pipeline for plain HTTP backends: picks an endpoint, places the credential, forwards, passes on. */
import {
  HttpVersion,
  type BackendSettings,
  type ServiceBackend,
  type StaticBackend,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../lib/header-list.ts";
import { ProxyError } from "../errors.ts";
import type { Exchange, Reply } from "../pipeline/exchange.ts";
import { grpcTimeoutMs, isGrpc } from "../pipeline/grpc.ts";
import { placeCredential } from "./auth.ts";
import { connectionOf } from "./connection.ts";
import { EndpointState, type EndpointSet } from "./endpoints.ts";
import type { BackendHandler } from "./handler.ts";
import { isIP } from "node:net";
import { versionFor } from "./version.ts";
import type { Upstream, UpstreamRequest, UpstreamResponse, UpstreamTarget } from "./upstream.ts";

/** Where the requests of one backend go. */
export interface Destination {
  /** @throws ProxyError endpoint_unavailable */
  pick(): EndpointState;
  target(endpoint: EndpointState): UpstreamTarget;
  /** Its name for a Host header; undefined: it has none. */
  readonly hostname: string | undefined;
  /** What it says it speaks. */
  readonly version: HttpVersion;
  /** Whether the name replaces the client's Host where no policy chose (backend.md 2). */
  readonly rewritesHost: boolean;
}

/** One address or name. */
export function staticDestination({ host, port, unixPath }: StaticBackend, settings: BackendSettings): Destination {
  const plain = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
  const endpoint = new EndpointState(unixPath === "" ? plain : unixPath, port);
  const target: UpstreamTarget = { ...connectionOf(settings), host: plain, port, unixPath };
  const named = unixPath === "" && isIP(plain) === 0;
  return {
    pick: () => endpoint,
    target: () => target,
    hostname: named ? plain : undefined,
    version: HttpVersion.UNSPECIFIED,
    rewritesHost: true,
  };
}

/** The ready endpoints of a Service port; its name is checked in certificates. */
export function serviceDestination(
  set: EndpointSet,
  { hostname, version }: ServiceBackend,
  settings: BackendSettings,
): Destination {
  const connection = connectionOf(settings);
  return {
    pick() {
      const endpoint = set.pick();
      if (endpoint === undefined) throw new ProxyError("endpoint_unavailable");
      return endpoint;
    },
    target: (endpoint) => endpoint.target(connection, hostname),
    hostname: hostname === "" ? undefined : hostname,
    version,
    rewritesHost: false,
  };
}

export function createHttpHandler(
  destination: Destination,
  { auth, http: limits }: BackendSettings,
  upstream: Upstream,
): BackendHandler {
  const fixedVersion = limits?.version || destination.version;
  const timeoutMs = limits?.requestTimeoutMs || Infinity;
  return function http(exchange) {
    const endpoint = destination.pick();
    exchange.endpoint = endpoint.name;
    if (exchange.connect)
      return call(exchange, endpoint, async () => {
        const stream = await upstream.open(destination.target(endpoint), limitOf(exchange, timeoutMs, false));
        // The bytes of the connection, and nothing of the request.
        return { status: 200, headers: new HeaderList(), body: null, tunnel: { protocol: "", stream } };
      });
    const headers = upstreamHeaders(exchange, authorityOf(exchange, destination));
    const path = auth === undefined ? exchange.target : placeCredential(auth, headers, exchange.target);
    return call(exchange, endpoint, () => {
      const target = destination.target(endpoint);
      const grpc = isGrpc(exchange.requestHeaders);
      const version = versionFor(exchange, fixedVersion, { grpc, tls: target.tls !== undefined });
      const { method, upgrade } = exchange;
      const scheme = exchange.scheme === exchange.originalScheme ? undefined : exchange.scheme;
      return upstream.send(target, {
        ...limitOf(exchange, timeoutMs, grpc),
        version,
        scheme,
        method,
        path,
        headers,
        upgrade,
      });
    });
  };
}

/** The body, and the limit of the attempt: the shortest of the backend's, the rule's and, for gRPC, the caller's own. */
function limitOf(
  exchange: Exchange,
  timeoutMs: number,
  grpc: boolean,
): Pick<UpstreamRequest, "body" | "deadlineAtMs" | "timeoutCode" | "abort"> {
  const { deadlineAtMs, backendTimeoutMs, requestBody: body } = exchange;
  let attemptAtMs = performance.now() + Math.min(backendTimeoutMs ?? Infinity, timeoutMs);
  let timeoutCode: UpstreamRequest["timeoutCode"] = "backend_timeout";
  if (grpc) {
    const callerAtMs = exchange.startedAtMs + (grpcTimeoutMs(exchange.requestHeaders) ?? Infinity);
    if (callerAtMs < attemptAtMs) {
      attemptAtMs = callerAtMs;
      timeoutCode = "grpc_timeout";
    }
  }
  // The exchange's own deadline aborts the call; only a shorter one of the attempt needs a timer here.
  if (attemptAtMs >= (deadlineAtMs ?? Infinity))
    return { body, deadlineAtMs: undefined, timeoutCode: "request_timeout", abort: exchange };
  return { body, deadlineAtMs: attemptAtMs, timeoutCode, abort: exchange };
}

/** Score: from the start of the attempt to the head of the answer; in flight: to the last byte. */
async function call(
  exchange: Exchange,
  endpoint: EndpointState,
  send: () => Promise<UpstreamResponse>,
): Promise<Reply> {
  const startedMs = performance.now();
  exchange.calledAtMs ??= startedMs;
  endpoint.pending++;
  endpoint.total++;
  exchange.onDone(() => endpoint.pending--);
  try {
    const { status, headers, body, tunnel } = await send();
    if (tunnel !== undefined) exchange.onDone(() => tunnel.stream.destroy());
    exchange.answeredAtMs = performance.now();
    endpoint.record(status < 500, (exchange.answeredAtMs - startedMs) / 1000);
    return { status, headers, body, tunnel, upstream: true };
  } catch (error) {
    if (error instanceof ProxyError) endpoint.record(false, 0);
    throw error;
  }
}

function authorityOf({ host, hostChoice }: Exchange, { hostname, rewritesHost }: Destination): string {
  const choice = hostChoice ?? (rewritesHost ? "auto" : "keep");
  return choice === "auto" ? (hostname ?? host) : host;
}

/** A copy for the wire: what policies see of the request never holds our credential. */
function upstreamHeaders(exchange: Exchange, host: string): HeaderList {
  const { raw, spelling } = exchange.requestHeaders;
  const out: string[] = ["host", host];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host") continue;
    out.push(name, raw[at + 1] as string);
  }
  return new HeaderList(out, spelling);
}
