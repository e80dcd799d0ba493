/** What is remembered of a finished connection of bytes: one access-log record (observability.md 1.1). */
import { PROXY_ERRORS } from "./errors.ts";
import type { TcpVisit } from "./listeners/tcp.ts";
import { describe, type Telemetry } from "./record.ts";

export function createConnectionRecorder(telemetry: Telemetry | undefined): (visit: TcpVisit) => void {
  const { accessLog } = telemetry ?? {};
  return (visit) => {
    if (accessLog?.enabled !== true) return;
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
