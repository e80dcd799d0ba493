/**
 * Compiles the merged `frontend` settings of a Bind, with defaults for missing values. The acceptor and the protocol
 * servers read the result when they accept a connection, so a change applies to new connections only.
 */
import { BlockList, isIP } from "node:net";
import { createSecureContext } from "node:tls";
import {
  ConnectMode,
  type FrontendHttp,
  type FrontendTls,
  type Keepalive,
  type ProxyProtocol,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Scope } from "../../cel/scope.ts";
import { ConfigError, messageOf } from "../../lib/errors.ts";
import { keepaliveTimes, type KeepaliveTimes } from "../../lib/network/keepalive.ts";
import { BODY_LIMIT_BYTES } from "../exchange/body.ts";
import type { Reports } from "../observability/observability.ts";
import { handshakeOptions } from "./tls/handshake-options.ts";

export interface Http1Settings {
  /** Keeps the spelling of header names where both sides speak HTTP/1. */
  readonly keepsCase: boolean;
  readonly maxFields: number;
  readonly idleTimeoutMs: number;
  /** Limits the wait for the first bytes of a connection, and for the head of each request. */
  readonly headTimeoutMs: number;
}

interface Http2Settings {
  readonly windowBytes: number;
  readonly connectionWindowBytes: number;
  readonly frameBytes: number;
  readonly maxHeaderBytes: number;
  /** undefined when the server sends no pings. */
  readonly pingIntervalMs: number | undefined;
  readonly pingTimeoutMs: number;
}

export interface Frontend {
  readonly keepalive: KeepaliveTimes;
  readonly tls: FrontendTls | undefined;
  /** The PROXY header that connections begin with; undefined when they have none. */
  readonly proxyProtocol: ProxyProtocol | undefined;
  readonly http1: Http1Settings;
  /** Decides about CONNECT; with `tunnel` every connection begins with one. */
  readonly connect: "deny" | "route" | "tunnel";
  readonly http2: Http2Settings;
  /** Limits the bytes of a body held in memory, unless a policy sets another limit. */
  readonly bodyLimitBytes: number;
  /** Access log, tracing and metrics of requests and connections. */
  readonly reports: Reports;
  /** Age at which an HTTP connection closes, after the responses in flight. */
  readonly maxConnectionMs: number | undefined;
  /** Reports whether the address is a trusted proxy, whose forwarding headers are kept. */
  trusts(address: string): boolean;
  /**
   * True when a policy cannot be read or served (fail closed): HTTP gets an error reply, TCP connections are refused.
   */
  readonly closed: boolean;
  /** Returns why networkAuthorization refuses the connection, for the log; undefined when it is admitted. */
  denialReason(connection: Scope): string | undefined;
}

const IDLE_TIMEOUT_MS = 600_000;
/** Window sizes are 31 bits (RFC 9113 §6.9.1). */
const LARGEST_WINDOW = 2_147_483_647;

/** The merged settings of all policies of a Bind. */
export interface FrontendParts extends Pick<Frontend, "closed" | "denialReason" | "proxyProtocol" | "reports"> {
  readonly keepalive: Keepalive | undefined;
  readonly tls: FrontendTls | undefined;
  readonly http: FrontendHttp | undefined;
  readonly connect: ConnectMode | undefined;
  /** Applies where `http` names no trusted proxies. */
  readonly trustedProxies: readonly string[];
}

export function compileFrontend(parts: FrontendParts): Frontend {
  const { keepalive, tls, http, proxyProtocol, connect, closed, denialReason } = parts;
  return {
    keepalive: keepaliveTimes(keepalive),
    tls,
    http1: {
      keepsCase: http?.http1PreserveCase === true,
      maxFields: http?.http1MaxHeaders || 100,
      idleTimeoutMs: http?.http1IdleTimeoutMs || IDLE_TIMEOUT_MS,
      headTimeoutMs: http?.http1IdleTimeoutMs || IDLE_TIMEOUT_MS,
    },
    http2: compileHttp2(http),
    bodyLimitBytes: http?.maxBufferBytes || BODY_LIMIT_BYTES,
    maxConnectionMs: http?.maxConnectionMs || undefined,
    trusts: compileTrust(http?.trustedProxies.length ? http.trustedProxies : parts.trustedProxies),
    connect: connect === ConnectMode.ROUTE ? "route" : connect === ConnectMode.TUNNEL ? "tunnel" : "deny",
    proxyProtocol,
    closed,
    denialReason,
    reports: parts.reports,
  };
}

/** @throws ConfigError when no handshake is possible with these settings */
export function checkTls(tls: FrontendTls | undefined): void {
  if (tls === undefined) return;
  try {
    createSecureContext(handshakeOptions(undefined, tls));
  } catch (cause) {
    throw new ConfigError(`frontend.tls: ${messageOf(cause)}`, { cause });
  }
}

function compileHttp2(http: FrontendHttp | undefined): Http2Settings {
  return {
    windowBytes: Math.min(http?.http2WindowBytes || 1_048_576, LARGEST_WINDOW),
    connectionWindowBytes: Math.min(http?.http2ConnectionWindowBytes || 16_777_216, LARGEST_WINDOW),
    frameBytes: http?.http2FrameBytes || 16_384,
    maxHeaderBytes: http?.http2MaxHeaderBytes || 16_384,
    pingIntervalMs: http?.http2KeepaliveIntervalMs || undefined,
    pingTimeoutMs: http?.http2KeepaliveTimeoutMs || 20_000,
  };
}

function compileTrust(ranges: readonly string[]): (address: string) => boolean {
  if (ranges.length === 0) return () => false;
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => {
    const version = isIP(address);
    return version !== 0 && list.check(address, version === 6 ? "ipv6" : "ipv4");
  };
}
