/** What is remembered of connections: one access-log record of each that carried bytes (observability.md 1.1), and counts of all. */
import { Protocol, type Bind } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ConnectionMeter } from "../telemetry/metrics.ts";
import { PROXY_ERRORS } from "./errors.ts";
import type { TcpVisit } from "./listeners/tcp.ts";
import { describe, type Telemetry } from "./record.ts";

export function createConnectionRecorder(telemetry: Telemetry | undefined): (visit: TcpVisit) => void {
  const { accessLog } = telemetry ?? {};
  return (visit) => {
    if (accessLog?.enabled !== true || !visit.reports.accessLog.wants(visit.peer)) return;
    const { listener, route, peer, error } = visit;
    accessLog.write({
      gateway: listener.gateway === "" ? undefined : `${listener.namespace}/${listener.gateway}`,
      listener: listener.name === "" ? undefined : listener.name,
      route_rule: route?.rule,
      route: route === undefined ? undefined : `${route.namespace}/${route.name}`,
      endpoint: visit.endpoint,
      "src.addr": `${peer.address}:${peer.port}`,
      "tls.sni": visit.serverName === "" ? undefined : visit.serverName,
      protocol: "tcp",
      error: error === undefined ? undefined : describe(error),
      reason: visit.clientGone ? "ClientClosed" : error === undefined ? undefined : PROXY_ERRORS[error.code].reason,
      duration: `${Math.round(performance.now() - visit.startedAtMs)}ms`,
    });
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
