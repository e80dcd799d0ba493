/** Which version of HTTP a request leaves with (proxying.md 4.1): what is configured, else what suits both sides. */
import { HttpVersion } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { RoutedExchange } from "../pipeline/exchange.ts";
import type { UpstreamVersion } from "./upstream.ts";

/** @param fixed what the configuration says @param about `grpc`: the request is; `tls`: the upstream is spoken to over it */
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
  // The client's own version is a guess about the upstream: one that refuses it is spoken to in the older one.
  return exchange.originalScheme === "http" && exchange.version === "HTTP/2" ? "http2_if_spoken" : "http1";
}

/** @returns undefined where the configuration leaves it open */
export function fixedVersion(version: HttpVersion | undefined): "http1" | "http2" | undefined {
  if (version === HttpVersion.HTTP1) return "http1";
  return version === HttpVersion.HTTP2 ? "http2" : undefined;
}
