/**
 * `frontend` of a GwPolicy: how a Gateway takes connections. What it reports about them (access log, tracing, metrics) is
 * not read here, and so named as not served.
 */
import { create, isFieldSet } from "@bufbuild/protobuf";
import type {
  Frontend,
  FrontendConnect,
  FrontendHttp as ApiHttp,
  FrontendProxyProtocol,
  FrontendTls as ApiTls,
} from "../../../generated/types/frontend.ts";
import type { Keepalive as ApiKeepalive } from "../../../generated/types/backend-policies.ts";
import {
  ConnectMode,
  ConnectSchema,
  FrontendHttpSchema,
  FrontendSettingsSchema,
  FrontendTlsSchema,
  KeepaliveSchema,
  ProxyProtocolSchema,
  TlsChoiceSchema,
  type FrontendHttp,
  type FrontendSettings,
  type FrontendTls,
  type Keepalive,
  type ProxyProtocol,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseDuration } from "../../lib/duration.ts";
import { parseByteSize } from "../../lib/quantity.ts";
import type { Report } from "../backends/settings.ts";
import { translateAuthorization } from "./authorization.ts";

const CONNECT_MODES: Readonly<Record<FrontendConnect["mode"], ConnectMode>> = {
  Deny: ConnectMode.DENY,
  Route: ConnectMode.ROUTE,
  Tunnel: ConnectMode.TUNNEL,
};
/** Timers of the data plane count milliseconds in 31 bits: 24 days. */
const LONGEST_MS = 2_147_483_647;

/** @param report paths are relative to `spec.frontend` @returns undefined when it says nothing that is served */
export function translateFrontend(block: Frontend | undefined, report: Report): FrontendSettings | undefined {
  if (block === undefined) return undefined;
  const { tcp, tls, http, proxyProtocol, networkAuthorization } = block;
  const message = create(FrontendSettingsSchema, {
    ...(tcp?.keepalive === undefined ? {} : { keepalive: keepalive(tcp.keepalive) }),
    ...(tls === undefined ? {} : { tls: translateTls(tls) }),
    ...(http === undefined ? {} : { http: translateHttp(http) }),
    ...(proxyProtocol === undefined ? {} : { proxyProtocol: translateHeader(proxyProtocol) }),
    ...(networkAuthorization === undefined
      ? {}
      : {
          networkAuthorization: translateAuthorization(
            networkAuthorization,
            "networkAuthorization",
            { report },
            "connection",
          ),
        }),
  });
  if (block.connect !== undefined) message.connect = create(ConnectSchema, { mode: CONNECT_MODES[block.connect.mode] });
  const isEmpty = FrontendSettingsSchema.fields.every((field) => !isFieldSet(message, field));
  return isEmpty ? undefined : message;
}

function keepalive({ time, interval, retries }: ApiKeepalive): Keepalive {
  return create(KeepaliveSchema, {
    timeMs: milliseconds(time),
    intervalMs: milliseconds(interval),
    probes: retries ?? 0,
  });
}

function translateHeader({ version, mode }: FrontendProxyProtocol): ProxyProtocol {
  return create(ProxyProtocolSchema, {
    v1: version === "V1" || version === "All",
    v2: version !== "V1",
    optional: mode === "Optional",
  });
}

function translateTls(tls: ApiTls): FrontendTls {
  return create(FrontendTlsSchema, {
    handshakeTimeoutMs: milliseconds(tls.handshakeTimeout),
    alpn: [...(tls.alpnProtocols ?? [])],
    choice: create(TlsChoiceSchema, {
      minVersion: tls.minProtocolVersion ?? "",
      maxVersion: tls.maxProtocolVersion ?? "",
      cipherSuites: [...(tls.cipherSuites ?? [])],
    }),
    keyExchangeGroups: [...(tls.keyExchangeGroups ?? [])],
  });
}

function translateHttp(http: ApiHttp): FrontendHttp {
  return create(FrontendHttpSchema, {
    maxBufferBytes: bytes(http.maxBufferSize),
    http1MaxHeaders: http.http1MaxHeaders ?? 0,
    http1IdleTimeoutMs: milliseconds(http.http1IdleTimeout),
    http1PreserveCase: http.http1HeaderCase === "Preserve",
    http2WindowBytes: bytes(http.http2WindowSize),
    http2ConnectionWindowBytes: bytes(http.http2ConnectionWindowSize),
    http2FrameBytes: bytes(http.http2FrameSize),
    http2MaxHeaderBytes: bytes(http.http2MaxHeaderSize),
    http2KeepaliveIntervalMs: milliseconds(http.http2KeepaliveInterval),
    http2KeepaliveTimeoutMs: milliseconds(http.http2KeepaliveTimeout),
    maxConnectionMs: milliseconds(http.maxConnectionDuration),
    trustedProxies: [...(http.trustedProxies ?? [])],
  });
}

/** Admission has checked the text. */
function milliseconds(text: string | undefined): number {
  return text === undefined ? 0 : Math.min(parseDuration(text) ?? 0, LONGEST_MS);
}

function bytes(size: string | number | undefined): number {
  return size === undefined ? 0 : (parseByteSize(size) ?? 0);
}
