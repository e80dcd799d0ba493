/** What every process with a data plane runs beside its listeners: admin, metrics and readiness servers. */
import { startAdminServer, startMetricsServer, startReadinessServer } from "../../admin/server.ts";
import { isEnabled, printLogFilter } from "../../lib/log.ts";
import { createProxy, type Proxy } from "../../proxy/proxy.ts";
import { createAccessLog } from "../../telemetry/access-log.ts";
import { createMetrics } from "../../telemetry/metrics.ts";
import type { DataPlaneOptions } from "../commands/options.ts";
import { VERSION } from "../version.ts";
import { configDump } from "./dump.ts";
import type { ProcessLog } from "./process.ts";

export interface DataPlane {
  readonly proxy: Proxy;
  /** What readiness still waits for; empty means ready. */
  readonly pending: Set<string>;
  /** Stops accepting, lets requests in flight end and closes everything. */
  stop(): Promise<void>;
}

export async function startDataPlane(options: DataPlaneOptions, { log, filter }: ProcessLog): Promise<DataPlane> {
  const metrics = createMetrics(VERSION);
  const accessLog = createAccessLog({
    write: (lines) => process.stderr.write(lines),
    onReady: (resume) => void process.stderr.once("drain", resume),
    enabled: () => isEnabled(filter, "request", "info"),
  });
  const proxy = createProxy({
    bindAddress: options.bindAddress,
    log: log.child("proxy"),
    ...(process.env["POD_NAME"] === undefined ? {} : { podName: process.env["POD_NAME"] }),
    telemetry: { metrics, accessLog },
  });
  const pending = new Set(["configuration"]);
  const stopping = Promise.withResolvers<void>();
  const servers = [
    await startAdminServer({
      address: options.adminAddress,
      state: () => configDump(proxy.state(), { bindAddress: options.bindAddress, logging: printLogFilter(filter) }),
      filter,
      log,
      drain: () => proxy.drain(),
      quit: () => stopping.resolve(),
    }),
    await startMetricsServer({ address: options.metricsAddress, render: () => metrics.print() }),
    await startReadinessServer({ address: options.readinessAddress, pending: () => [...pending] }),
  ];
  void stopping.promise.then(() => process.kill(process.pid, "SIGTERM"));
  return {
    proxy,
    pending,
    async stop() {
      pending.add("shutdown");
      await proxy.drain();
      proxy.close();
      accessLog.close();
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}
