/**
 * The interface that everything uses to reach an upstream. Implementations own pools, connect timeouts and TLS; callers
 * own retries and the meaning of requests.
 */
import type { Socket } from "node:net";
import type { HeaderList } from "../../lib/header-list.ts";
import type { Body, BodyStream } from "../exchange/body.ts";
import type { Abortable, Tunnel } from "../exchange/exchange.ts";
import type { UpstreamTarget } from "./dial/connection-settings.ts";
import type { RequestAuth, SigningScope } from "./auth.ts";
import type { BackendSettings } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

/**
 * `negotiated`: by ALPN, and HTTP/1.1 on plain text. `http2_if_spoken`: probed on plain text, falls back to HTTP/1.1.
 */
export type UpstreamVersion = "http1" | "http2" | "http2_if_spoken" | "negotiated";

export interface UpstreamRequest {
  readonly version: UpstreamVersion;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Value of `:scheme` in HTTP/2; undefined when it follows from whether the connection uses TLS. */
  readonly scheme?: "http" | "https" | undefined;
  /** Is sent as given, with Host; hop-by-hop fields are already removed. The client adds the framing of the body. */
  readonly headers: HeaderList;
  readonly body: Body;
  /** Protocols to upgrade to (RFC 9110 §7.8), over HTTP/1.1 only; undefined when no upgrade is requested. */
  readonly upgrade?: string | undefined;
  /** Deadline for the last byte of the response, on the clock of performance.now(); undefined when there is none. */
  readonly deadlineAtMs: number | undefined;
  /** Error code when the deadline passes. */
  readonly timeoutCode: "request_timeout" | "backend_timeout" | "grpc_timeout";
  /** The exchange that the call serves: the call is aborted together with it. */
  readonly abort?: { onAbort(target: Abortable): void } | undefined;
}

export interface UpstreamResponse {
  readonly status: number;
  /** Hop-by-hop fields are removed; Content-Length stays when the body has that length. */
  readonly headers: HeaderList;
  readonly body: BodyStream | null;
  /** Set with status 101. */
  readonly tunnel?: Tunnel | undefined;
}

/** Limits on opening a connection; they do not apply to the bytes that pass through it later. */
export interface RawRequest extends Pick<UpstreamRequest, "deadlineAtMs" | "timeoutCode" | "abort"> {
  /**
   * CDN-Loop field (RFC 8586) of the CONNECT request that the connection serves; it is passed on to a forward proxy.
   */
  readonly cdnLoop?: string | undefined;
}

export interface Upstream {
  /**
   * @throws ProxyError upstream_unreachable, connect_timeout, upstream_broken, request_timeout, backend_timeout,
   * grpc_timeout, response_invalid, upgrade_failed
   */
  send(target: UpstreamTarget, request: UpstreamRequest): Promise<UpstreamResponse>;
  /**
   * Opens a connection for raw bytes that only this caller uses.
   * @returns a paused socket
   * @throws ProxyError upstream_unreachable, connect_timeout, request_timeout, backend_timeout
   */
  open(target: UpstreamTarget, request: RawRequest): Promise<Socket>;
  /** Lets connections of that backend take no new request: idle ones close now, the others after their requests. */
  retire(owner: string): void;
  /** Handles the removal of a backend: its connections stay until they have been idle for long enough. */
  forget(owner: string): void;
  /** Lets connections that show the former workload identity take no new request, as `retire` does. */
  identityChanged(): void;
  /**
   * Counts connections per backend key; a shared target counts for its first backend. Connections from `open` are not
   * included.
   */
  connections(): ReadonlyMap<string, ConnectionCounts>;
  close(): void;
}

/** Number of open connections: active ones serve a request, idle ones wait for one. */
export interface ConnectionCounts {
  readonly active: number;
  readonly idle: number;
}

/** One endpoint of a backend, for calls that the gateway makes on its own, such as callouts. */
export interface CallTarget {
  readonly target: UpstreamTarget;
  /** Host and port of the service for the Host header. */
  readonly authority: string;
  readonly auth: RequestAuth | undefined;
  /** See SignRequest. */
  readonly signingScope?: SigningScope | undefined;
  readonly http: BackendSettings["http"];
  /** Counts the start of a call. @returns a callback for its end; `healthy` is undefined when the outcome is unknown */
  begin(): (healthy: boolean | undefined) => void;
}
