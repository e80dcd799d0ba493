/** The one way out to an upstream. Implementations own pools, connect timeouts and TLS; callers own retries and meaning. */
import type { Socket } from "node:net";
import type { Reach } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import type { Body, BodyStream } from "../pipeline/body.ts";
import type { Abortable, Tunnel } from "../pipeline/exchange.ts";
import type { ConnectionSettings } from "./connection-settings.ts";
import type { ConnectionCounts } from "./pool.ts";

/** Where to connect, and how. One pool per distinct target. */
export interface UpstreamTarget extends ConnectionSettings {
  readonly host: string;
  readonly port: number;
  /** Takes the place of host and port when not "". */
  readonly unixPath: string;
  /** Of a static backend; unset: anywhere. */
  readonly reach?: Reach | undefined;
  /** Key of the backend that the connections are made for; unset: they outlive any change of it. No part of what is shared. */
  readonly owner?: string | undefined;
}

/** "host:port" as logs name it, or the path of a socket. */
export function nameOfTarget({ host, port, unixPath }: Pick<UpstreamTarget, "host" | "port" | "unixPath">): string {
  if (unixPath !== "") return unixPath;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** `negotiated`: what the TLS handshake says, HTTP/1.1 on plain text. `http2_if_spoken`: on plain text, else HTTP/1.1. */
export type UpstreamVersion = "http1" | "http2" | "http2_if_spoken" | "negotiated";

export interface UpstreamRequest {
  readonly version: UpstreamVersion;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** What HTTP/2 says in `:scheme`; undefined: whether the upstream is spoken to over TLS. */
  readonly scheme?: "http" | "https" | undefined;
  /** Sent as given, Host included; hop-by-hop fields are already gone. The client adds the framing of the body. */
  readonly headers: HeaderList;
  readonly body: Body;
  /** The protocols to go on with (RFC 9110 7.8); unset: none. Only over HTTP/1.1. */
  readonly upgrade?: string | undefined;
  /** performance.now() by which the last byte of the answer must be here; undefined: no limit. */
  readonly deadlineAtMs: number | undefined;
  /** Code of the error when that deadline passes. */
  readonly timeoutCode: "request_timeout" | "backend_timeout" | "grpc_timeout";
  /** The exchange that the call is made for: when it is given up, so is the call. */
  readonly abort?: { onAbort(target: Abortable): void } | undefined;
}

export interface UpstreamResponse {
  readonly status: number;
  /** Hop-by-hop fields are gone; Content-Length stays when the body is as long as it says. */
  readonly headers: HeaderList;
  readonly body: BodyStream | null;
  /** With status 101. */
  readonly tunnel?: Tunnel | undefined;
}

/** Limits of the opening of a connection; what comes through afterwards has none. */
export interface RawRequest extends Pick<UpstreamRequest, "deadlineAtMs" | "timeoutCode" | "abort"> {
  /** As of RoutedExchange, of the CONNECT that it is opened for: a proxy on the way is told. */
  readonly cdnLoop?: string | undefined;
}

export interface Upstream {
  /** @throws ProxyError upstream_unreachable, connect_timeout, upstream_broken, request_timeout, backend_timeout, grpc_timeout, response_invalid, upgrade_failed */
  send(target: UpstreamTarget, request: UpstreamRequest): Promise<UpstreamResponse>;
  /** A connection for bytes, made for this call alone. @returns a paused socket @throws ProxyError upstream_unreachable, connect_timeout, request_timeout, backend_timeout */
  open(target: UpstreamTarget, request: RawRequest): Promise<Socket>;
  /** Connections made for that backend take no new request: idle ones end now, the others with what they are used for. */
  retire(owner: string): void;
  /** That backend is gone: nothing names it any more. Its connections end when nobody has used them for long enough. */
  forget(owner: string): void;
  /** Connections that were made with a former workload identity take no new request, as with `retire`. */
  identityChanged(): void;
  /** By the key of the backend; where two lead to one place, by that of the first. Connections of `open` are not among them. */
  connections(): ReadonlyMap<string, ConnectionCounts>;
  close(): void;
}
