/**
 * Starts a data plane and what every process with one runs beside its listeners: admin, metrics and readiness servers.
 * `gwproxy up` and `gwproxy proxy` use it.
 */
import type { DataPlaneOptions } from "./options.ts";
import { startMetricsServer, startReadinessServer } from "../admin/probe-servers.ts";
import { startAdminServer } from "../admin/server.ts";
import type { ApplyResult, ResourceUpdate } from "../ir/resource.ts";
import { systemClock } from "../lib/time/clock.ts";
import { FatalError, messageOf } from "../lib/errors.ts";
import { OwnListeners } from "../lib/network/own-listeners.ts";
import { type Logger, printLogFilter } from "../lib/log.ts";
import { parseSessionKeys, randomSessionKey } from "../proxy/mcp/session/session-keys.ts";
import type { Proxy } from "../proxy/proxy.ts";
import { createAccessLog, lineLevel } from "../telemetry/access-log.ts";
import { resourceOf } from "../telemetry/otlp/resource.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { observeProcess, observeThread } from "../telemetry/process-gauges.ts";
import { VERSION } from "../lib/version.ts";
import { readAdminToken } from "./admin-token.ts";
import { AppliedUpdates } from "./applied-updates.ts";
import { buildConsoleData } from "./console-data.ts";
import { configDump } from "./dump.ts";
import { createLineOutput } from "./line-output.ts";
import type { ProcessLog } from "./process.ts";
import { createShutdown, drainTimes } from "./shutdown.ts";

export interface DataPlane {
  readonly proxy: Proxy;
  /** Applies an update, and notes for the dump what became of it. */
  apply(update: ResourceUpdate): Promise<ApplyResult>;
  /** Names of the steps that readiness still waits for; the process is ready when it is empty. */
  readonly pending: Set<string>;
  /** Stops in stages (shutdown.ts): readiness fails, connections are drained, then everything is closed. */
  stop(): Promise<void>;
  readonly metrics: Metrics;
  /** "host:port" of the admin server, as bound. */
  readonly adminAddress: string;
  /** Addresses of this process that its own fetches must not reach. */
  readonly ownListeners: OwnListeners;
}

/** The proxy, with functions that apply a changed log filter and that end everything besides its connections. */
interface Serving {
  readonly proxy: Proxy;
  filterChanged(): void;
  /** Ends the proxy and writes the remaining log lines. */
  end(): Promise<void>;
}

/** @param source where the configuration comes from */
export async function startDataPlane(
  options: DataPlaneOptions,
  processLog: ProcessLog,
  source: "files" | "controller",
): Promise<DataPlane> {
  const { log, filter } = processLog;
  const adminToken = await readAdminToken(options.adminTokenFile);
  const metrics = createMetrics(VERSION);
  const ownListeners = new OwnListeners();
  const { proxy, filterChanged, end } = await serve(options, processLog, { metrics, ownListeners });
  const pending = new Set(["configuration"]);
  const applied = new AppliedUpdates();
  observeProcess(metrics);
  observeThread(metrics, "main");
  metrics.observe("config_synchronized", () => [{ values: [], value: pending.has("configuration") ? 0 : 1 }]);
  const review = setInterval(() => void retireSeries(metrics, proxy), RETIRE_INTERVAL_MS);
  review.unref();
  const shutdown = createShutdown({
    proxy,
    times: drainTimes({ min: options.drainMin, max: options.drainMax, grace: options.gracePeriod }),
    clock: systemClock,
    begun: () => void pending.add("shutdown"),
  });
  const servers = [
    await startAdminServer({
      address: options.adminAddress,
      token: adminToken,
      state: async () =>
        configDump(await proxy.state(), { config: settingsOf(options, printLogFilter(filter)), applied }),
      explain: (name) => proxy.explain(name),
      explainGateway: (name) => proxy.explainGateway(name),
      async console(query) {
        await proxy.refresh();
        const { read } = metrics;
        const state = await proxy.state();
        const sources = { state, applied, pending, source, version: VERSION, read, now: new Date() };
        return buildConsoleData(sources, query);
      },
      tasks: () => proxy.tasks(),
      profile: (request, signal) => proxy.profile(request, signal),
      watch: (watchOptions) => proxy.watch(watchOptions),
      filter,
      onFilter: filterChanged,
      log,
      drain: () => shutdown.accepted(),
      quit: () => process.kill(process.pid, "SIGTERM"),
    }),
    await startMetricsServer({
      address: options.metricsAddress,
      async render(format) {
        await proxy.refresh();
        return metrics.print(format);
      },
    }),
    await startReadinessServer({ address: options.readinessAddress, pending: () => [...pending] }),
  ] as const;
  for (const { bound } of servers) ownListeners.add(bound);
  return {
    proxy,
    async apply(update) {
      const result = await proxy.apply(update);
      applied.record(update, result);
      return result;
    },
    pending,
    metrics,
    adminAddress: servers[0].address,
    ownListeners,
    async stop() {
      await shutdown.over();
      clearInterval(review);
      await end();
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

/** Returns the effective settings of the process, without secrets. */
function settingsOf(
  { bindAddress, workers, adminAddress, metricsAddress, readinessAddress, logFormat, trustedProxies }: DataPlaneOptions,
  logging: string,
): object {
  const addresses = { admin: adminAddress, metrics: metricsAddress, readiness: readinessAddress };
  return { bindAddress, workers, addresses, logging, logFormat, trustedProxies };
}

/**
 * Returns the keys that seal MCP sessions. All threads need the same ones, so that a random one is made here.
 * @throws FatalError for a text that is not a list of keys; it does not show the text
 */
function sessionKeysOf(text: string | undefined, log: Logger): readonly string[] {
  if (text === undefined) {
    log.info("MCP sessions end with this process, as SESSION_KEY is not set");
    return [randomSessionKey()];
  }
  try {
    return parseSessionKeys(text);
  } catch (error) {
    throw new FatalError(`--session-key (SESSION_KEY): ${messageOf(error)}; use openssl rand -hex 32`, 2, error);
  }
}

const RETIRE_INTERVAL_MS = 60_000;

/** Removes the time series of routes and Binds that no longer exist, after a delay. */
async function retireSeries(metrics: Metrics, proxy: Proxy): Promise<void> {
  const { resources } = await proxy.state();
  const routes = new Set<string>();
  const binds = new Set<string>();
  for (const { type, key, message } of resources) {
    if (type === "Bind") binds.add(key);
    if (type === "HttpRoute" || type === "TcpRoute")
      routes.add(`${message.object?.namespace ?? ""}/${message.object?.name ?? ""}`);
  }
  metrics.retire({ routes, binds }, performance.now());
}

/**
 * Starts the proxy. With one thread everything runs in this one, since another would only cost memory. With several
 * threads the main thread serves nothing and does not load the proxy.
 */
async function serve(
  options: DataPlaneOptions,
  { log, filter }: ProcessLog,
  { metrics, ownListeners }: Pick<DataPlane, "metrics" | "ownListeners">,
): Promise<Serving> {
  const podName = process.env["POD_NAME"];
  const sessionKeys = sessionKeysOf(options.sessionKey, log);
  const shared = {
    bindAddress: options.bindAddress,
    ownListeners,
    trustedProxies: options.trustedProxies,
    sessionKeys,
    log: log.child("proxy"),
    resource: resourceOf(process.env, VERSION),
    ...(podName === undefined ? {} : { podName }),
    ...(options.spiffeEndpointSocket === undefined ? {} : { spiffeEndpoint: options.spiffeEndpointSocket }),
    locality: { node: process.env["NODE_NAME"] ?? "", zone: process.env["NODE_ZONE"] ?? "" },
  };
  const onDropped = (lines: number): void => metrics.dropped("log", "access", lines);
  const output = createLineOutput(process.stdout, log, onDropped);
  if (options.workers > 1) {
    const { workers: count, threadTimeout } = options;
    const stuckAfterMs = threadTimeout * 1000;
    const { createWorkers } = await import("../proxy/workers/workers.ts");
    const proxy = createWorkers({
      ...shared,
      count,
      stuckAfterMs,
      version: VERSION,
      filter,
      metrics,
      logFormat: options.logFormat,
      write: writeToStderr,
      writeAccessLog: (lines) => output.written(lines),
    });
    const end = async (): Promise<void> => {
      await proxy.end();
      output.end();
    };
    return { proxy, filterChanged: () => proxy.filterChanged(), end };
  }
  const accessLog = createAccessLog({
    format: options.logFormat,
    write: (lines) => output.write(lines),
    onReady: (resume) => output.onRoom(resume),
    onDropped,
    level: () => lineLevel(filter),
  });
  const { createProxy } = await import("../proxy/proxy.ts");
  const proxy = createProxy({ ...shared, telemetry: { metrics, accessLog } });
  const end = async (): Promise<void> => {
    await proxy.end();
    accessLog.close();
    output.end();
  };
  return { proxy, filterChanged: () => undefined, end };
}

/** Resolves when stderr can take more lines. */
function writeToStderr(lines: string): Promise<void> {
  return new Promise((resolve) => {
    if (process.stderr.write(lines)) resolve();
    else process.stderr.once("drain", () => resolve());
  });
}
