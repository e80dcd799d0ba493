/**
 * Translates `frontend` of a GwPolicy: how a Gateway accepts connections, and what it reports about them.
 * `../content.ts` uses it.
 */
import { create, isFieldSet } from "@bufbuild/protobuf";
import type {
  Frontend,
  FrontendConnect,
  FrontendHttp as ApiHttp,
  FrontendProxyProtocol,
  FrontendTls as ApiTls,
} from "../../../../generated/types/frontend.ts";
import {
  ConnectMode,
  ConnectSchema,
  FrontendHttpSchema,
  FrontendSettingsSchema,
  FrontendTlsSchema,
  ProxyProtocolSchema,
  TlsChoiceSchema,
  type FrontendHttp,
  type FrontendSettings,
  type FrontendTls,
  type ProxyProtocol,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { timerMs } from "../../../lib/time/duration.ts";
import { parseByteSize } from "../../../lib/quantity.ts";
import { translateKeepalive } from "../../backends/settings/tcp.ts";
import { translateAuthorization } from "../shared/authorization.ts";
import { translateAccessLog, translateMetrics, translateTracing, type ReportsContext } from "./reports.ts";

const CONNECT_MODES: Readonly<Record<FrontendConnect["mode"], ConnectMode>> = {
  Deny: ConnectMode.DENY,
  Route: ConnectMode.ROUTE,
  Tunnel: ConnectMode.TUNNEL,
};

/** @returns undefined when the block sets no supported member */
export function translateFrontend(block: Frontend | undefined, context: ReportsContext): FrontendSettings | undefined {
  if (block === undefined) return undefined;
  const { tcp, tls, http, proxyProtocol, networkAuthorization, accessLog, tracing, metrics } = block;
  const message = create(FrontendSettingsSchema, {
    ...(tcp?.keepalive === undefined ? {} : { keepalive: translateKeepalive(tcp.keepalive) }),
    ...(tls === undefined ? {} : { tls: translateTls(tls) }),
    ...(http === undefined ? {} : { http: translateHttp(http) }),
    ...(proxyProtocol === undefined ? {} : { proxyProtocol: translateHeader(proxyProtocol) }),
    ...(networkAuthorization === undefined
      ? {}
      : {
          networkAuthorization: translateAuthorization(
            networkAuthorization,
            "networkAuthorization",
            context,
            "connection",
          ),
        }),
    ...(accessLog === undefined ? {} : { accessLog: translateAccessLog(accessLog, context) }),
    ...(tracing === undefined ? {} : { tracing: translateTracing(tracing, context) }),
    ...(metrics === undefined ? {} : { metrics: translateMetrics(metrics, context) }),
  });
  if (block.connect !== undefined) message.connect = create(ConnectSchema, { mode: CONNECT_MODES[block.connect.mode] });
  const isEmpty = FrontendSettingsSchema.fields.every((field) => !isFieldSet(message, field));
  return isEmpty ? undefined : message;
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
    handshakeTimeoutMs: timerMs(tls.handshakeTimeout),
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
    http1IdleTimeoutMs: timerMs(http.http1IdleTimeout),
    http1PreserveCase: http.http1HeaderCase === "Preserve",
    http2WindowBytes: bytes(http.http2WindowSize),
    http2ConnectionWindowBytes: bytes(http.http2ConnectionWindowSize),
    http2FrameBytes: bytes(http.http2FrameSize),
    http2MaxHeaderBytes: bytes(http.http2MaxHeaderSize),
    http2KeepaliveIntervalMs: timerMs(http.http2KeepaliveInterval),
    http2KeepaliveTimeoutMs: timerMs(http.http2KeepaliveTimeout),
    maxConnectionMs: timerMs(http.maxConnectionDuration),
    trustedProxies: [...(http.trustedProxies ?? [])],
  });
}

function bytes(size: string | number | undefined): number {
  return size === undefined ? 0 : (parseByteSize(size) ?? 0);
}
