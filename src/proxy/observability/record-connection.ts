/**
 * Reports finished TCP connections: an access log record for each that carried bytes (docs/access-log.md), and counters
 * for all.
 */
import { Protocol, type Bind } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ConnectionMeter } from "../../telemetry/metrics.ts";
import type { ReportedConnection } from "../exchange/exchange.ts";
import type { Reports } from "./observability.ts";
import type { Telemetry } from "./record.ts";
import { ConnectionFacts } from "./connection-facts.ts";
import type { Ids } from "./ids.ts";

export function createConnectionRecorder(
  telemetry: Telemetry | undefined,
  ids: Ids,
): (visit: ReportedConnection & { readonly reports: Reports }) => void {
  const { accessLog } = telemetry ?? {};
  return (visit) => {
    const { accessLog: report, otlpLog } = visit.reports;
    const isLogged = accessLog !== undefined && accessLog.level !== "off";
    if (!isLogged && otlpLog === undefined) return;
    const facts = new ConnectionFacts(visit, ids);
    otlpLog?.record(facts);
    if (isLogged && report.wants(facts.scope)) accessLog.write(report, facts);
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
