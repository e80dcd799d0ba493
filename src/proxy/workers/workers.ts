/**
 * A data plane of several threads, with the same interface as one thread (Proxy); a process with more than one thread
 * creates it. The main thread keeps the resources and sends them to the workers; each worker opens the same ports
 * (SO_REUSEPORT), and the kernel distributes the connections.
 *
 * An update is acknowledged when all workers have applied it, and a resource that one worker refuses counts as refused.
 * Updates and joining workers share one queue (`#queue`): a worker that joined during an update would miss it.
 *
 *   started ──ready──► waits in the queue ──apply all resources──► serving
 *      │                      │                                       │
 *      └────────────── crash, stuck or failed to join ────────────────┘
 *                                     │
 *                       shared slots freed, backoff ──► started again with the same number
 *
 * A worker that dies takes only its own connections with it. The watchdog kills a worker whose event loop is blocked,
 * and exponential backoff delays the replacement in a crash loop.
 */
import type { ApplyResult, Resource, ResourceUpdate } from "../../ir/resource.ts";
import { type Backoff, createBackoff } from "../../lib/time/backoff.ts";
import { type Clock, systemClock } from "../../lib/time/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { type LogFilter, type Logger, printLogFilter } from "../../lib/log.ts";
import type { OwnListeners } from "../../lib/network/own-listeners.ts";
import type { LogFormat } from "../../telemetry/log-lines.ts";
import { resourceOf, type Resource as Reporter } from "../../telemetry/otlp/resource.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { ProxyLocality } from "../balancing/endpoints.ts";
import type { OpenedWatch } from "../debug-trace/debug-traces.ts";
import type { WatchOptions } from "../debug-trace/watch.ts";
import type { EndpointDump } from "../balancing/endpoint-dump.ts";
import type { OpenListener } from "../listeners/tasks.ts";
import { captureProfile, type ProfileRequest, type ThreadProfile } from "../../lib/profiling/capture.ts";
import type { Proxy, ProxyState, TaskList } from "../proxy.ts";
import type { ExplainedPort, ExplainedRoute } from "../router/explain-route.ts";
import { newestRows, type CredentialDump } from "../tokens/report.ts";
import type { WorkloadApiDump } from "../spiffe/workload-api.ts";
import { randomSessionKey } from "../mcp/session/session-keys.ts";
import { observeHealth } from "../observability/observations.ts";
import { heapLimitMib } from "./heap-limit.ts";
import { PortAllocator } from "./port-allocator.ts";
import { encodeUpdate, type EncodedUpdate } from "./protocol.ts";
import { allocateShared, openShared, type SharedState } from "../shared-state.ts";
import { waitAtMost } from "../../lib/time/wait-at-most.ts";
import { joinTasks, nameOf, names, refuseAll } from "./join-answers.ts";
import { openSharedWatch } from "./shared-watch.ts";
import { TokenCoordinator } from "./token-coordinator.ts";
import { BEAT_MS, Watchdog } from "./watchdog.ts";
import { WorkerThread } from "./worker-thread.ts";

export interface WorkersOptions {
  readonly count: number;
  readonly bindAddress: string;
  readonly version: string;
  readonly log: Logger;
  /** Shared and mutable: after a change the owner calls `filterChanged`. */
  readonly filter: LogFilter;
  /** Writes whole log lines of the workers. @returns when there is room for more */
  readonly write: (lines: string) => Promise<void>;
  /** Writes whole lines of the access log. @returns when there is room for more */
  readonly writeAccessLog: (lines: string) => Promise<void>;
  readonly logFormat: LogFormat;
  readonly ports?: (bindPort: number) => number;
  readonly podName?: string;
  readonly trustedProxies?: readonly string[];
  readonly locality?: ProxyLocality;
  readonly resource?: Reporter;
  readonly spiffeEndpoint?: string;
  readonly ownListeners?: OwnListeners;
  /** Keys that seal MCP sessions; without them the threads share a random one. */
  readonly sessionKeys?: readonly string[];
  readonly metrics?: Metrics;
  readonly clock?: Clock;
  /** Replaces a thread whose event loop is blocked for this long; 0 disables. */
  readonly stuckAfterMs?: number;
  /** Memory that all threads share; by default that of the container or of the machine. */
  readonly memoryBytes?: number;
}

export interface Workers extends Proxy {
  filterChanged(): void;
  /** Threads that serve at the moment. */
  readonly threads: ReadonlySet<WorkerThread>;
}

/** Limits the wait for busy threads; their counts are added when they arrive. */
const REFRESH_MS = 1_000;
/** Longer than the five seconds in which each thread hands over its telemetry. */
const FLUSH_MS = 6_000;
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 10_000;
/** A thread that ran for this long did not end in a crash loop. */
const STABLE_MS = 60_000;
const STUCK_AFTER_MS = 30_000;

export function createWorkers(options: WorkersOptions): Workers {
  return new WorkerPool(options);
}

class WorkerPool implements Workers {
  readonly threads = new Set<WorkerThread>();
  readonly #options: WorkersOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #portAllocator: PortAllocator;
  readonly #shared: SharedState;
  readonly #watchdog: Watchdog;
  readonly #tokenCoordinator: TokenCoordinator = new TokenCoordinator();
  readonly #start: (thread: number) => WorkerThread;
  /** Resources in force, by type and key. */
  readonly #resources = new Map<string, Resource>();
  /** Port by Bind in force, kept apart so that an update does not search thousands of resources. */
  #ports: ReadonlyMap<string, number> = new Map();
  /** All running threads, including those that do not serve yet. */
  readonly #all = new Set<WorkerThread>();
  #listeners: readonly OpenListener[] = [];
  #endpoints: readonly EndpointDump[] = [];
  #workloadIdentity: WorkloadApiDump | null = null;
  /** What each thread has fetched. */
  readonly #credentials = new Map<number, readonly CredentialDump[]>();
  #queue: Promise<unknown>;
  #lastWatch = 0;
  #announces = false;
  #stopped = false;

  constructor(options: WorkersOptions) {
    const { count, log, bindAddress, metrics } = options;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = log;
    this.#portAllocator = new PortAllocator(bindAddress, options.ports ?? ((port) => port));
    // The main thread has the last number: it serves nothing, and frees the shared slots of dead threads.
    const shared = allocateShared(count + 1);
    this.#shared = openShared(shared, count);
    const sessionKeys = options.sessionKeys ?? [randomSessionKey()];
    this.#watchdog = new Watchdog(shared.beats, options.stuckAfterMs ?? STUCK_AFTER_MS);
    const heapMib = heapLimitMib(count, options.memoryBytes);
    this.#start = (thread) =>
      new WorkerThread(
        {
          thread,
          shared,
          bindAddress,
          podName: options.podName,
          trustedProxies: options.trustedProxies ?? [],
          locality: options.locality,
          spiffeEndpoint: options.spiffeEndpoint,
          ownListeners: options.ownListeners?.memory,
          sessionKeys,
          version: options.version,
          resource: options.resource ?? resourceOf({}, options.version),
          logFilter: printLogFilter(options.filter),
          logFormat: options.logFormat,
        },
        heapMib,
        {
          port: ({ bind, port }) => this.#portAllocator.portOf(bind, port),
          lines: async (text) => void (await options.write(text)),
          accessLines: async (text) => void (await options.writeAccessLog(text)),
          counted: (counted) => void metrics?.add(counted),
          token: (request) => this.#tokenCoordinator.ask(thread, request),
          peer: ({ thread: other, request }) => this.#thread(other).channel.ask("peer", request),
          tokenFetched: ({ key, outcome }) => void this.#tokenCoordinator.fetched(thread, key, outcome),
        },
      );
    metrics?.observe("endpoint_health", () => observeHealth(this.#endpoints));
    const backoffs = Array.from({ length: count }, () =>
      createBackoff({ initialMs: FIRST_WAIT_MS, maxMs: LONGEST_WAIT_MS }),
    );
    // The first update waits until all workers have joined.
    this.#queue = Promise.all(backoffs.map((backoff, thread) => this.#begin(thread, backoff, (join) => join())));
    if (this.#watchdog.isOn) this.#watch();
  }

  /** Schedules the next look after this one, so that looks missed during a suspension are not made up for. */
  #watch(): void {
    this.#clock.after(BEAT_MS, () => {
      if (this.#stopped) return;
      for (const thread of this.#all)
        if (this.#watchdog.isStuck(thread.number)) thread.kill("its event loop was blocked for too long");
      this.#watch();
    });
  }

  apply(update: ResourceUpdate): Promise<ApplyResult> {
    return this.#inTurn(() => this.#apply(update));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  listeners(): readonly OpenListener[] {
    return this.#listeners;
  }

  async state(): Promise<ProxyState> {
    await this.refresh();
    return {
      resources: [...this.#resources.values()],
      listeners: this.#listeners,
      endpoints: this.#endpoints,
      workloadIdentity: this.#workloadIdentity,
      credentials: newestRows([...this.#credentials.values()].flat()),
    };
  }

  async explain(name: string): Promise<readonly ExplainedRoute[]> {
    return this.#thread().channel.ask("explain", name);
  }

  async explainGateway(name: string): Promise<readonly ExplainedPort[]> {
    return this.#thread().channel.ask("explainGateway", name);
  }

  watch(options: WatchOptions): Promise<OpenedWatch> {
    return openSharedWatch([...this.threads], ++this.#lastWatch, options);
  }

  async tasks(): Promise<TaskList> {
    return joinTasks(await this.#askAll(({ channel }) => channel.ask("tasks", undefined)));
  }

  /** The main thread serves nothing, but is profiled as well. */
  async profile(request: ProfileRequest, signal?: AbortSignal): Promise<readonly ThreadProfile[]> {
    signal?.addEventListener("abort", () => void this.#askAll(({ channel }) => channel.ask("profileEnd", undefined)));
    const asked = this.#askAll(({ channel }) => channel.ask("profile", request));
    return (await Promise.all([captureProfile(request, signal), asked])).flat(2);
  }

  async refresh(): Promise<void> {
    const collected = this.#askAll((thread) => this.#collect(thread));
    await waitAtMost(this.#clock, REFRESH_MS, collected);
  }

  async #collect(thread: WorkerThread): Promise<void> {
    const collected = await thread.channel.ask("collect", undefined);
    const { counted, observations, endpoints, workloadIdentity, credentials } = collected;
    // All threads have a stream to the same agent, so any one's answer serves.
    this.#workloadIdentity = workloadIdentity;
    this.#credentials.set(thread.number, credentials);
    this.#options.metrics?.add(counted);
    // Skip the observations of a thread that died meanwhile: `#onThreadEnd` has removed its series.
    if (this.threads.has(thread)) this.#options.metrics?.replaceObservations(String(thread.number), observations);
    // Endpoint statistics are in shared memory, so each worker returns the same.
    this.#endpoints = endpoints;
  }

  filterChanged(): void {
    const text = printLogFilter(this.#options.filter);
    void this.#askAll((thread) => thread.channel.ask("logFilter", text), this.#all);
  }

  announce(): void {
    this.#announces = true;
    void this.#askAll((thread) => thread.channel.ask("announce", undefined));
  }

  async drain(): Promise<void> {
    this.#stopped = true;
    await this.#askAll((thread) => thread.channel.ask("drain", undefined));
  }

  async end(): Promise<void> {
    this.#stopped = true;
    const ended = this.#askAll(({ channel }) => channel.ask("end", undefined));
    await waitAtMost(this.#clock, FLUSH_MS, ended);
    this.close();
  }

  close(): void {
    this.#stopped = true;
    for (const thread of this.#all) thread.kill();
  }

  /**
   * @param number unset for any thread, since every one has the same configuration
   * @throws Error when no thread of this number serves
   */
  #thread(number?: number): WorkerThread {
    const thread = [...this.threads].find((each) => number === undefined || each.number === number);
    if (thread === undefined) throw new Error("the thread has ended");
    return thread;
  }

  /** Returns the responses of the threads that survive; a request to a thread that ends is dropped. */
  async #askAll<T>(
    ask: (thread: WorkerThread) => Promise<T>,
    threads: Iterable<WorkerThread> = this.threads,
  ): Promise<T[]> {
    const answers = await Promise.all(Array.from(threads, (thread) => ask(thread).catch(() => undefined)));
    return answers.filter((answer) => answer !== undefined);
  }

  /**
   * Starts a thread, and replaces it when it ends.
   * @param turn waits until the thread may get the resources in force; by default its turn in the queue
   * @returns when the thread serves or has failed
   */
  async #begin(
    number: number,
    backoff: Backoff,
    turn: (join: () => Promise<void>) => Promise<void> = (join) => this.#inTurn(join),
  ): Promise<void> {
    this.#watchdog.reset(number);
    const thread = this.#start(number);
    const startedAtMs = this.#clock.now();
    this.#all.add(thread);
    void thread.ended.then((reason) => this.#onThreadEnd(thread, reason, startedAtMs, backoff));
    try {
      await thread.ready;
      await turn(() => this.#join(thread));
    } catch (error) {
      if (!this.#stopped) this.#log.error("a thread could not start", { thread: number, reason: messageOf(error) });
      thread.kill();
    }
  }

  /** Sends all resources in force to a thread, so that it serves. */
  async #join(thread: WorkerThread): Promise<void> {
    // Announce before it opens a port: it may replace a thread that died during the shutdown.
    if (this.#announces) await thread.channel.ask("announce", undefined);
    if (this.#stopped) throw new Error("the data plane ends");
    const { refused, listeners } = await thread.channel.ask("apply", encodeUpdate(this.#resources.values(), []));
    for (const { type, key, reason } of refused)
      this.#log.error("a thread refuses what others serve", { thread: thread.number, type, key, reason });
    this.#listeners = listeners;
    this.threads.add(thread);
  }

  #onThreadEnd(thread: WorkerThread, reason: string, startedAtMs: number, backoff: Backoff): void {
    this.#all.delete(thread);
    this.threads.delete(thread);
    this.#shared.endpoints.forget(thread.number);
    this.#shared.buckets.forget(thread.number);
    this.#shared.sessions.ended.forget(thread.number);
    this.#shared.sessions.healed.forget(thread.number);
    this.#tokenCoordinator.forget(thread.number);
    this.#credentials.delete(thread.number);
    this.#options.metrics?.replaceObservations(String(thread.number), undefined);
    if (this.#stopped) return;
    this.#options.metrics?.threadReplaced();
    if (this.#clock.now() - startedAtMs > STABLE_MS) backoff.reset();
    const waitMs = Math.round(backoff.next());
    this.#log.error("a thread died and is replaced", { thread: thread.number, reason, wait_ms: waitMs });
    this.#clock.after(waitMs, () => {
      if (!this.#stopped) void this.#begin(thread.number, backoff);
    });
  }

  async #apply(update: ResourceUpdate): Promise<ApplyResult> {
    const asked = new Set(this.threads);
    const ports = this.#portsAfter(update);
    this.#portAllocator.expect(ports);
    const answers = await this.#applyAll(encodeUpdate(update.set, update.removed), asked);
    if (asked.size > 0 && answers.length === 0) return { refused: refuseAll(update) };
    const refused = new Map(
      answers.flatMap((answer) => answer.refused.map((entry) => [nameOf(entry), entry] as const)),
    );
    const split = [...refused.keys()].filter((name) => !answers.every((answer) => names(answer).has(name)));
    await this.#restore(split);
    this.#portAllocator.settled();
    this.#ports = ports;
    for (const entry of update.removed) if (!refused.has(nameOf(entry))) this.#resources.delete(nameOf(entry));
    for (const entry of update.set)
      // Keep a Bind whose port cannot be opened: every update tries again.
      if (entry.type === "Bind" || !refused.has(nameOf(entry))) this.#resources.set(nameOf(entry), entry);
    return { refused: [...refused.values()] };
  }

  async #applyAll(
    update: EncodedUpdate,
    threads: Iterable<WorkerThread> = this.threads,
  ): Promise<(ApplyResult & { readonly listeners: readonly OpenListener[] })[]> {
    const answers = await this.#askAll((thread) => thread.channel.ask("apply", update), threads);
    this.#listeners = answers[0]?.listeners ?? this.#listeners;
    return answers;
  }

  /**
   * Restores the former version of resources that only some threads refused. Compilation gives the same result on every
   * thread, but memory and ports may not, and all threads have to serve the same configuration.
   */
  async #restore(names: readonly string[]): Promise<void> {
    const former = names.map((name) => this.#resources.get(name)).filter((resource) => resource !== undefined);
    for (const name of names) this.#log.error("threads disagree about a resource", { name });
    if (former.length > 0) await this.#applyAll(encodeUpdate(former, []));
  }

  /** Returns port by Bind after the update. It ignores rejections, because the port of a refused Bind is tried again. */
  #portsAfter({ set, removed }: ResourceUpdate): ReadonlyMap<string, number> {
    const ports = new Map(this.#ports);
    for (const { type, key } of removed) if (type === "Bind") ports.delete(key);
    for (const resource of set) if (resource.type === "Bind") ports.set(resource.key, resource.message.port);
    return ports;
  }
}
