/**
 * Entry of a worker thread, started by WorkerThread: runs a complete data plane on the ports that all workers share.
 * The main thread sends encoded resources; the worker sends log lines and counts back.
 */
import { parentPort, workerData } from "node:worker_threads";
import { collectWhenIdle } from "../../lib/collect-when-idle.ts";
import { OwnListeners } from "../../lib/network/own-listeners.ts";
import { createLogger, parseLogFilter } from "../../lib/log.ts";
import { createAccessLog, lineLevel } from "../../telemetry/access-log.ts";
import { createMetrics } from "../../telemetry/metrics.ts";
import { observeThread } from "../../telemetry/process-gauges.ts";
import { Threads } from "../mcp/session/threads.ts";
import { createProxy } from "../proxy.ts";
import { Channel } from "./channel.ts";
import {
  decodeUpdate,
  type Collected,
  type MainProtocol,
  type WorkerProtocol,
  type WorkerSettings,
} from "./protocol.ts";
import { watchHandlers } from "./watch-handlers.ts";
import { createTokenBroker } from "./token-broker.ts";
import { openShared } from "../shared-state.ts";
import { startBeating } from "./watchdog.ts";

/** Interval at which counts go to the main thread, and thus what a crash may lose of them. */
const COLLECT_INTERVAL_MS = 1_000;
/** Access log batches on their way to the main thread, before the access log waits. */
const MAX_BATCHES = 8;

if (parentPort === null) throw new Error("this is a thread of gwproxy, not a program");

// WorkerThread passes these settings.
const settings = workerData as WorkerSettings;
const filter = parseLogFilter(settings.logFilter) ?? { level: "info" as const, modules: new Map() };
startBeating(settings.shared.beats, settings.thread);
let isFirst = true;
const main = new Channel<MainProtocol, WorkerProtocol>(parentPort, {
  async apply(update) {
    const { refused } = await proxy.apply(decodeUpdate(update));
    if (isFirst) collectWhenIdle();
    isFirst = false;
    return { refused, listeners: proxy.listeners() };
  },
  collect,
  explain: (name) => proxy.explain(name),
  explainGateway: (name) => proxy.explainGateway(name),
  peer: (request) => threads.answer(request),
  ...watchHandlers((options) => proxy.watch(options)),
  tasks: () => proxy.tasks(),
  profile: (request) => proxy.profile(request, (profiling = new AbortController()).signal),
  profileEnd() {
    profiling.abort();
  },
  logFilter(text) {
    Object.assign(filter, parseLogFilter(text));
  },
  announce() {
    proxy.announce();
  },
  async drain() {
    await proxy.drain();
  },
  async end() {
    await proxy.end();
    accessLog.close();
    await main.ask("accessLines", "");
  },
});
const threads = new Threads(settings.thread, (thread, request) => main.ask("peer", { thread, request }));
const log = createLogger(filter, (line) => void main.ask("lines", line));
const metrics = createMetrics(settings.version);
observeThread(metrics, String(settings.thread));
let batches = 0;
let profiling = new AbortController();
let resume: (() => void) | undefined;
const accessLog = createAccessLog({
  format: settings.logFormat,
  write(lines) {
    batches++;
    void main.ask("accessLines", lines).then(taken);
    return batches < MAX_BATCHES;
  },
  onReady: (call) => (resume = call),
  onDropped: (lines) => metrics.dropped("log", "access", lines),
  level: () => lineLevel(filter),
});
const proxy = createProxy({
  bindAddress: settings.bindAddress,
  trustedProxies: settings.trustedProxies,
  log: log.child("proxy"),
  ...(settings.podName === undefined ? {} : { podName: settings.podName }),
  ...(settings.locality === undefined ? {} : { locality: settings.locality }),
  resource: settings.resource,
  ...(settings.spiffeEndpoint === undefined ? {} : { spiffeEndpoint: settings.spiffeEndpoint }),
  ...(settings.ownListeners === undefined ? {} : { ownListeners: new OwnListeners(settings.ownListeners) }),
  sessionKeys: settings.sessionKeys,
  shared: openShared(settings.shared, settings.thread),
  portOf: ({ key, port }) => main.ask("port", { bind: key, port }),
  telemetry: { metrics, accessLog },
  tokenBroker: createTokenBroker((name, body) => main.ask(name, body)),
  threads,
});

/** Notes that the main thread has written a batch, and resumes the access log. */
function taken(): void {
  batches--;
  const call = resume;
  resume = undefined;
  call?.();
}

async function collect(): Promise<Collected> {
  const { endpoints, workloadIdentity, credentials } = await proxy.state();
  return { counted: metrics.take(), observations: metrics.observations(), endpoints, workloadIdentity, credentials };
}

setInterval(() => void main.ask("counted", metrics.take()), COLLECT_INTERVAL_MS).unref();
void main.ask("ready", undefined);
