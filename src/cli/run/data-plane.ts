/** What every process with a data plane runs beside its listeners: admin, metrics and readiness servers. */
import { startAdminServer, startMetricsServer, startReadinessServer } from "../../admin/server.ts";
import { createLogger, type LogFilter, type Logger, parseLogFilter } from "../../lib/log.ts";
import { createProxy, type Proxy } from "../../proxy/proxy.ts";
import type { DataPlaneOptions } from "../commands/options.ts";
import { VERSION } from "../version.ts";

export interface ProcessLog {
  readonly log: Logger;
  readonly filter: LogFilter;
}

export interface DataPlane {
  readonly proxy: Proxy;
  /** What readiness still waits for; empty means ready. */
  readonly pending: Set<string>;
  /** Stops accepting, lets requests in flight end and closes everything. */
  stop(): Promise<void>;
}

/** Log lines go to stderr, so that stdout stays for what a command prints. */
export function createProcessLog(filterText: string): ProcessLog {
  const filter = parseLogFilter(filterText) ?? { level: "info" as const, modules: new Map() };
  return { filter, log: createLogger(filter, (line) => void process.stderr.write(line)) };
}

export async function startDataPlane(options: DataPlaneOptions, { log, filter }: ProcessLog): Promise<DataPlane> {
  const proxy = createProxy({ bindAddress: options.bindAddress, log });
  const pending = new Set(["configuration"]);
  const stopping = Promise.withResolvers<void>();
  const servers = [
    await startAdminServer({
      address: options.adminAddress,
      state: () => ({ ...proxy.state(), version: { version: VERSION, node: process.versions.node } }),
      filter,
      log,
      drain: () => proxy.drain(),
      quit: () => stopping.resolve(),
    }),
    await startMetricsServer({ address: options.metricsAddress, render: () => proxy.metrics() }),
    await startReadinessServer({ address: options.readinessAddress, pending: () => [...pending] }),
  ];
  void stopping.promise.then(() => process.kill(process.pid, "SIGTERM"));
  return {
    proxy,
    pending,
    async stop() {
      pending.add("shutdown");
      await proxy.drain();
      await proxy.close();
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

/** Resolves when the process is told to stop. A second signal ends it at once. */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(1));
        resolve();
      });
    }
  });
}
