/**
 * Chooses the HTTP version of a request to an upstream: the configured one, else one that suits both sides. Backends
 * use it.
 */
import { HttpVersion } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";
import type { UpstreamVersion } from "./upstream.ts";

/**
 * @param fixed the configured version
 * @param about `grpc`: the request is a gRPC call; `tls`: the upstream is reached over TLS
 */
export function versionFor(
  exchange: RoutedExchange,
  fixed: HttpVersion,
  { grpc, tls }: { readonly grpc: boolean; readonly tls: boolean },
): UpstreamVersion {
  if (exchange.upgrade !== undefined) return "http1";
  const configured = fixedVersion(fixed);
  if (configured !== undefined) return configured;
  if (grpc) return "http2";
  if (tls) return "negotiated";
  // On plain text the client's version is only a guess: an upstream that refuses HTTP/2 gets HTTP/1.1.
  return exchange.originalScheme === "http" && exchange.version === "HTTP/2" ? "http2_if_spoken" : "http1";
}

/** @returns undefined when the configuration leaves the version open */
export function fixedVersion(version: HttpVersion | undefined): "http1" | "http2" | undefined {
  if (version === HttpVersion.HTTP1) return "http1";
  return version === HttpVersion.HTTP2 ? "http2" : undefined;
}
