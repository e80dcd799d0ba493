/**
 * The data plane of one thread: applies updates of IR resources and serves traffic on the sockets of its Binds. A
 * process with one thread creates it directly, and each worker thread creates one. It does not know where resources
 * come from or which Kubernetes objects they were translated from. A configuration change never drops a connection or a
 * request in flight.
 */
import { hostname } from "node:os";
import { compileExpression, failingExpression } from "../cel/compile/compile-expression.ts";
import type { Expression } from "../cel/expression.ts";
import { environmentOf, type CelPhase } from "../cel/environments/phases.ts";
import type { ApplyResult, Resource, ResourceUpdate } from "../ir/resource.ts";
import type { Bind } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { type Clock, systemClock } from "../lib/time/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { OwnListeners } from "../lib/network/own-listeners.ts";
import { monotonicMs } from "../lib/time/monotonic.ts";
import { captureProfile, type ProfileRequest, type ThreadProfile } from "../lib/profiling/capture.ts";
import { createPasswordChecker, type PasswordChecker } from "../lib/password/checker.ts";
import { resourceOf, type Resource as Reporter } from "../telemetry/otlp/resource.ts";
import { createUpstream } from "./upstream/client/client.ts";
import type { CallTarget, Upstream } from "./upstream/upstream.ts";
import { DestinationGuard } from "./upstream/dial/destination-guard.ts";
import { createResolver, type Resolver } from "./upstream/dial/dns.ts";
import type { ProxyLocality } from "./balancing/endpoints.ts";
import type { EndpointDump } from "./balancing/endpoint-dump.ts";
import { BackendRegistry } from "./backends/registry.ts";
import { Binds } from "./listeners/binds/binds.ts";
import type { OpenListener, Task } from "./listeners/tasks.ts";
import { createCallouts, type Callouts } from "./callouts/callouts.ts";
import { DebugTraces, type OpenedWatch } from "./debug-trace/debug-traces.ts";
import { traceExpression } from "./debug-trace/traced-expression.ts";
import type { WatchOptions } from "./debug-trace/watch.ts";
import { Configuration } from "./configuration.ts";
import { BODY_LIMIT_BYTES } from "./exchange/body.ts";
import { Catalogs } from "./llm/cost/catalogs.ts";
import { sealOf } from "./mcp/session/session-keys.ts";
import { Sessions } from "./mcp/session/sessions.ts";
import type { Threads } from "./mcp/session/threads.ts";
import { BackendTraffic } from "./pipeline/backend-traffic.ts";
import { PolicySet } from "./policies/policy-set.ts";
import { createConnectionRecorder, meterOf } from "./observability/record-connection.ts";
import { observeHealth, observePools } from "./observability/observations.ts";
import { createRecorder, type Telemetry } from "./observability/record.ts";
import { Exporters } from "./observability/exporters.ts";
import { workloadSocket } from "../lib/network/workload-endpoint.ts";
import { WorkloadApi, type WorkloadApiDump } from "./spiffe/workload-api.ts";
import type { CredentialDump } from "./tokens/report.ts";
import type { TokenBroker } from "./tokens/token.ts";
import { Tokens } from "./tokens/tokens.ts";
import type { ExplainedPort, ExplainedRoute } from "./router/explain-route.ts";
import { allocateShared, openShared, type SharedState } from "./shared-state.ts";

export interface ProxyOptions {
  readonly bindAddress: string;
  readonly log: Logger;
  /** Maps a Bind's port to the one to open; 0 lets the system choose. By default the port itself. */
  readonly ports?: (bindPort: number) => number;
  /** The CEL variable `env.podName`; by default the host name, which in Kubernetes is the pod's name. */
  readonly podName?: string;
  /** Addresses and ranges whose X-Forwarded headers are kept, where no policy names others. */
  readonly trustedProxies?: readonly string[];
  readonly nowMs?: () => number;
  /** Schedules timers, such as those that end connections. */
  readonly clock?: Clock;
  readonly connectTimeoutMs?: number;
  /** State shared with other threads; without it this thread counts for itself. */
  readonly shared?: SharedState;
  /** Keys that seal MCP sessions, 64 hexadecimal digits each; without them a random one. */
  readonly sessionKeys?: readonly string[];
  /** Replaces `ports` for a thread that opens its ports together with others. */
  readonly portOf?: (bind: Bind) => Promise<number>;
  /** Zone and node of this process, for Services that prefer close endpoints. */
  readonly locality?: ProxyLocality;
  /** Returns a number in [0, 1), like Math.random; tests inject a seeded one. */
  readonly random?: () => number;
  /** OpenTelemetry resource attributes of exported telemetry; by default the service name alone. */
  readonly resource?: Reporter;
  /**
   * Endpoint of the SPIFFE Workload API, "unix:///path" or "tcp://address:port"; without it there are no identities.
   */
  readonly spiffeEndpoint?: string;
  /** Listeners of this process that traffic must not reach. */
  readonly ownListeners?: OwnListeners;
  /** Access log and metrics; without it nothing is recorded. */
  readonly telemetry?: Telemetry;
  /** Shares fetched credentials with other threads; without it this thread fetches for itself. */
  readonly tokenBroker?: TokenBroker;
  /** Reaches the threads that hold streams of MCP sessions; without it this thread is alone. */
  readonly threads?: Threads;
}

export interface ProxyState {
  readonly resources: readonly Resource[];
  readonly listeners: readonly OpenListener[];
  readonly endpoints: readonly EndpointDump[];
  /** null when no listener or backend needs an identity. */
  readonly workloadIdentity: WorkloadApiDump | null;
  /** Credentials for backends that were fetched, without their values. */
  readonly credentials: readonly CredentialDump[];
}

export interface TaskList {
  readonly tasks: readonly Task[];
  readonly truncated: boolean;
}

/** Connections in the list of tasks of one thread. */
const MAX_TASKS = 10_000;

export interface Proxy {
  /** Applies an update, atomically for requests, and returns the refused resources. Calls are queued. */
  apply(update: ResourceUpdate): Promise<ApplyResult>;
  listeners(): readonly OpenListener[];
  /** Returns the state for dumps; its resources still contain secrets. */
  state(): Promise<ProxyState>;
  /**
   * Returns the policies of the routes of a name in the order in which they run, on each listener; empty for an unknown
   * route.
   * @param name "namespace/name"
   */
  explain(name: string): Promise<readonly ExplainedRoute[]>;
  /**
   * Returns how the ports of a Gateway take connections; empty for an unknown Gateway.
   * @param name "namespace/name"
   */
  explainGateway(name: string): Promise<readonly ExplainedPort[]>;
  /** Waits for a request to follow, for `/debug/trace`. */
  watch(options: WatchOptions): Promise<OpenedWatch>;
  /** Returns the connections and requests in progress, up to a limit. */
  tasks(): Promise<TaskList>;
  /** Profiles all threads that serve. */
  profile(request: ProfileRequest, signal?: AbortSignal): Promise<readonly ThreadProfile[]>;
  /** Collects the metrics of worker threads, where there are any. */
  refresh(): Promise<void>;
  /** Asks clients to end each connection after the responses in flight; new connections are accepted and asked too. */
  announce(): void;
  /** Announces and stops accepting; resolves when every connection is gone. */
  drain(): Promise<void>;
  /** Cuts the remaining connections, exports the telemetry about them, and stops; takes at most five seconds. */
  end(): Promise<void>;
  /** Stops everything at once. */
  close(): void;
}

/** Limits connecting to an upstream, from the DNS lookup to the end of the TLS handshake. */
const CONNECT_TIMEOUT_MS = 11_000;

export function createProxy(options: ProxyOptions): Proxy {
  const thread = fillDefaults(options);
  const outbound = createOutbound(thread, (backendKey) => configured.backends.pickCallTarget(backendKey));
  const configured = createConfiguration(thread, outbound);
  const { metrics } = thread;
  metrics?.observe("endpoint_health", () => observeHealth(configured.backends.dump()));
  metrics?.observe("upstream_pool_connections", () => observePools(outbound.upstream));
  return proxyOf(outbound, configured, createBinds(thread, outbound, configured));
}

/** The options with their defaults, from which every part of the thread is created. */
interface ThreadContext {
  readonly options: ProxyOptions;
  readonly log: Logger;
  readonly clock: Clock;
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly podName: string;
  readonly shared: SharedState;
  readonly metrics: Telemetry["metrics"];
}

function fillDefaults(options: ProxyOptions): ThreadContext {
  return {
    options,
    log: options.log,
    clock: options.clock ?? systemClock,
    nowMs: options.nowMs ?? monotonicMs,
    random: options.random ?? Math.random,
    podName: options.podName ?? hostname(),
    shared: options.shared ?? openShared(allocateShared(1), 0),
    metrics: options.telemetry?.metrics,
  };
}

/** What leaves the thread: name lookups, workload identities, connections to upstreams, calls of policies. */
interface Outbound {
  readonly resolver: Resolver;
  readonly identities: WorkloadApi;
  readonly upstream: Upstream;
  readonly callouts: Callouts;
}

/** @param pickCallTarget chooses an endpoint of a backend, by the key of the backend */
function createOutbound(
  { options, log, clock, metrics }: ThreadContext,
  pickCallTarget: (backendKey: string) => CallTarget,
): Outbound {
  const resolver = createResolver();
  const identities: WorkloadApi = new WorkloadApi({
    endpoint: options.spiffeEndpoint,
    log,
    clock,
    onChange() {
      upstream.identityChanged();
      callouts.identityChanged();
    },
  });
  const guard = new DestinationGuard({
    ownListeners: options.ownListeners,
    workloadSocket: workloadSocket(options.spiffeEndpoint),
  });
  const connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
  const upstream = createUpstream({ resolver, guard, connectTimeoutMs, identities, onConnected: metrics?.connected });
  const callouts = createCallouts({
    upstream,
    names: resolver,
    guard,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    pickCallTarget,
    identities,
    onCalled: metrics?.called,
  });
  return { resolver, identities, upstream, callouts };
}

/** What the resources of the thread are compiled into. */
interface ConfigurationParts {
  readonly configuration: Configuration;
  readonly backends: BackendRegistry;
  readonly tokens: Tokens;
  readonly exporters: Exporters;
  readonly passwords: PasswordChecker;
  readonly debugTraces: DebugTraces;
}

function createConfiguration(thread: ThreadContext, { upstream, callouts, identities }: Outbound): ConfigurationParts {
  const { options, log, clock, nowMs, random, podName, shared, metrics } = thread;
  const passwords = createPasswordChecker({ clock });
  const debugTraces: DebugTraces = new DebugTraces({
    compile: (source) => compileExpression(source, environmentOf("gateway")),
    secretHeaders: () => configuration.secretHeaders(),
    secretParameters: (bind) => configuration.secretParametersOf(bind),
  });
  const expression: typeof lenientExpression = (source, place) =>
    traceExpression(lenientExpression(source, place), debugTraces);
  const policies = new PolicySet({
    log,
    nowMs,
    expression,
    passwords,
    slots: shared.buckets,
    callout: (service, subtype, timeoutMs) => callouts.open(service, subtype, timeoutMs),
  });
  const catalogs = new Catalogs();
  const tokens = new Tokens({ log, broker: options.tokenBroker, onFetched: metrics?.credentialFetched });
  const traffic = new BackendTraffic(policies);
  const backends = new BackendRegistry({
    log,
    catalogs,
    sessions: new Sessions(sealOf(options.sessionKeys ?? []), shared.sessions, Date.now, options.threads),
    upstream,
    policies,
    traffic: (key) => traffic.of(key),
    expression,
    slots: shared.endpoints,
    locality: options.locality ?? { zone: "", node: "" },
    random,
    nowMs,
    identities,
    replica: shared.replica,
    callouts: () => callouts,
    tokens,
    meterOf: metrics?.backend,
  });
  const exporters = new Exporters({
    log: log.child("otlp"),
    clock,
    callouts,
    resource: options.resource ?? resourceOf({}, ""),
    onDropped: (signal, records) => metrics?.dropped("otlp", signal, records),
  });
  const { trustedProxies = [] } = options;
  const parts = { log, policies, backends, catalogs, exporters, trustedProxies, identities, podName, random };
  const configuration = new Configuration(parts);
  return { configuration, backends, tokens, exporters, passwords, debugTraces };
}

function createBinds(
  thread: ThreadContext,
  { upstream }: Outbound,
  { configuration, debugTraces }: ConfigurationParts,
): Binds {
  const { options, log, clock, podName, shared } = thread;
  const { telemetry, portOf } = options;
  return new Binds({
    log,
    clock,
    bindAddress: options.bindAddress,
    replica: shared.replica,
    podName,
    configuration,
    upstream,
    debugTraces,
    onFinished: createRecorder(telemetry, shared.ids, (bind) => configuration.secretParametersOf(bind)),
    onConnectionFinished: createConnectionRecorder(telemetry, shared.ids),
    meterOf: (bind) => meterOf(telemetry, bind),
    portOf: portOf ?? ((bind) => options.ports?.(bind.port) ?? bind.port),
    sharesPorts: portOf !== undefined,
  });
}

function proxyOf(
  outbound: Outbound,
  { configuration, backends, tokens, exporters, passwords, debugTraces }: ConfigurationParts,
  binds: Binds,
): Proxy {
  const { resolver, identities, upstream, callouts } = outbound;
  let queue: Promise<unknown> = Promise.resolve();
  const apply = async (update: ResourceUpdate): Promise<ApplyResult> => {
    const refused = configuration.apply(update);
    // Wait for a newly needed workload identity, so that requests do not fail just because the agent has had no time.
    await identities.settled();
    return { refused: [...refused, ...(await binds.settle())] };
  };
  const close = (): void => {
    for (const part of [binds, identities, callouts, upstream, resolver, passwords, debugTraces]) part.close();
  };

  return {
    apply(update) {
      const done = queue.then(() => apply(update));
      queue = done.catch(() => undefined);
      return done;
    },
    listeners: () => binds.listeners(),
    state() {
      const resources = [...configuration.resources()];
      return Promise.resolve({
        resources,
        listeners: binds.listeners(),
        endpoints: backends.dump(),
        workloadIdentity: identities.dump(),
        credentials: tokens.dump(),
      });
    },
    explain: (name) => Promise.resolve(configuration.explain(name)),
    explainGateway: (name) => Promise.resolve(configuration.explainGateway(name)),
    watch: (watchOptions) => Promise.resolve(debugTraces.open(watchOptions)),
    tasks: () => Promise.resolve(binds.tasks(MAX_TASKS)),
    profile: async (request, signal) => [await captureProfile(request, signal)],
    refresh: () => Promise.resolve(),
    announce: () => binds.announce(),
    drain: () => binds.drain(),
    async end() {
      binds.close();
      await binds.drain();
      // Sockets emit `close` one event-loop turn after destroy; wait for it before flushing the exporters.
      await new Promise(setImmediate);
      await exporters.end();
      close();
    },
    close,
  };
}

/** Compiles an expression; one that does not compile fails on each evaluation, and its rule decides what that means. */
function lenientExpression(source: string, place: CelPhase): Expression {
  try {
    return compileExpression(source, environmentOf(place));
  } catch (error) {
    return failingExpression(source, messageOf(error));
  }
}
