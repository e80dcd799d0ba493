/** What is remembered of connections: one access-log record of each that carried bytes (observability.md 1.1), and counts of all. */
import { Protocol, type Bind } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ConnectionMeter } from "../../telemetry/metrics.ts";
import type { TcpSession } from "../listeners/tcp/server.ts";
import type { Telemetry } from "./record.ts";
import { ConnectionFacts } from "./connection-facts.ts";
import type { Ids } from "./ids.ts";

export function createConnectionRecorder(telemetry: Telemetry | undefined, ids: Ids): (visit: TcpSession) => void {
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

/** Counts the connections of a Bind; undefined: nobody wants to know. */
export function meterOf(telemetry: Telemetry | undefined, bind: Bind): ConnectionMeter | undefined {
  const { key, gateway, protocol } = bind;
  return telemetry?.metrics?.connections({
    bind: key,
    gateway: `${gateway?.namespace ?? ""}/${gateway?.name ?? ""}`,
    protocol: PROTOCOLS.get(protocol) ?? "unknown",
  });
}
