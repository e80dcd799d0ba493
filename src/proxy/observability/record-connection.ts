/**
 * Reports finished TCP connections: an access log record for each that carried bytes (docs/access-log.md), and counters
 * for all.
 */
import { Protocol, type Bind } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ConnectionMeter } from "../../telemetry/metrics.ts";
import type { ReportedConnection } from "../exchange/exchange.ts";
import type { Reports } from "./observability.ts";
import type { Telemetry } from "./record.ts";
import { ConnectionStreamInfo } from "./stream-info/connection-stream-info.ts";
import type { Ids } from "./ids.ts";

export function createConnectionRecorder(
  telemetry: Telemetry | undefined,
  ids: Ids,
): (session: ReportedConnection & { readonly reports: Reports }) => void {
  const { accessLog } = telemetry ?? {};
  return (session) => {
    const { accessLog: report, otlpLog } = session.reports;
    const isLogged = accessLog !== undefined && accessLog.level !== "off";
    if (!isLogged && otlpLog === undefined) return;
    const info = new ConnectionStreamInfo(session, ids);
    otlpLog?.record(info);
    if (isLogged && report.wants(info.scope)) accessLog.write(report, info);
  };
}

const PROTOCOLS: ReadonlyMap<Protocol, string> = new Map([
  [Protocol.HTTP, "http"],
  [Protocol.HTTPS, "https"],
  [Protocol.TCP, "tcp"],
  [Protocol.TLS, "tls"],
]);

/** Returns the counters of a Bind's connections; undefined when there are no metrics. */
export function meterOf(telemetry: Telemetry | undefined, bind: Bind): ConnectionMeter | undefined {
  const { key, gateway, protocol } = bind;
  return telemetry?.metrics?.connections({
    bind: key,
    gateway: `${gateway?.namespace ?? ""}/${gateway?.name ?? ""}`,
    protocol: PROTOCOLS.get(protocol) ?? "unknown",
  });
}
