/**
 * How a Bind takes connections (frontend.md 1): what was set, with the usual in place of what was not. In: the merged
 * settings. Out: values that are looked at when a connection is accepted, so that a change meets new connections only.
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
import { keepaliveTimes, type KeepaliveTimes } from "../keepalive.ts";
import { BODY_LIMIT_BYTES } from "../pipeline/body.ts";
import type { Reports } from "../observability/observability.ts";
import { handshakeOptions } from "./tls/handshake-options.ts";

export interface Http1Settings {
  /** Names of fields leave as they came, where both sides speak HTTP/1. */
  readonly keepsCase: boolean;
  readonly maxFields: number;
  readonly idleTimeoutMs: number;
  /** For the first bytes of a connection, and for the head of a request. */
  readonly headTimeoutMs: number;
}

interface Http2Settings {
  readonly windowBytes: number;
  readonly connectionWindowBytes: number;
  readonly frameBytes: number;
  readonly maxHeaderBytes: number;
  /** undefined: no pings. */
  readonly pingIntervalMs: number | undefined;
  readonly pingTimeoutMs: number;
}

export interface Frontend {
  readonly keepalive: KeepaliveTimes;
  readonly tls: FrontendTls | undefined;
  /** The header that connections begin with; undefined: they have none. */
  readonly proxyProtocol: ProxyProtocol | undefined;
  readonly http1: Http1Settings;
  /** What happens to CONNECT; `tunnel`: every connection begins with one. */
  readonly connect: "deny" | "route" | "tunnel";
  readonly http2: Http2Settings;
  /** Of a body, held in memory where nothing more special is said. */
  readonly bodyLimitBytes: number;
  /** What is reported about requests and connections. */
  readonly reports: Reports;
  /** After that much time a connection of HTTP ends, with what is under way. */
  readonly maxConnectionMs: number | undefined;
  /** Whether what a peer says about its own clients is believed. */
  trusts(address: string): boolean;
  /** A policy cannot be read or served: HTTP answers so, and bytes are not passed on at all. */
  readonly closed: boolean;
  /** Why the connection is refused, for the log; undefined: it is taken. */
  refusal(connection: Scope): string | undefined;
}

const IDLE_TIMEOUT_MS = 600_000;
/** Window sizes are 31 bits (RFC 9113 6.9.1). */
const LARGEST_WINDOW = 2_147_483_647;

/** What the policies of a Bind say, merged. */
export interface FrontendParts extends Pick<Frontend, "closed" | "refusal" | "proxyProtocol" | "reports"> {
  readonly keepalive: Keepalive | undefined;
  readonly tls: FrontendTls | undefined;
  readonly http: FrontendHttp | undefined;
  readonly connect: ConnectMode | undefined;
  /** Where `http` names none. */
  readonly trustedProxies: readonly string[];
}

export function compileFrontend(parts: FrontendParts): Frontend {
  const { keepalive, tls, http, proxyProtocol, connect, closed, refusal } = parts;
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
    refusal,
    reports: parts.reports,
  };
}

/** @throws ConfigError for a choice that no handshake can be made with */
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
