/**
 * The data plane. In: updates of resources. Out: sockets that serve. Not here: where resources come from, what objects
 * they were made of. A change never drops a connection or a request in flight.
 */
import { hostname } from "node:os";
import { compileExpression, failingExpression } from "../cel/compile/compile-expression.ts";
import type { Expression } from "../cel/expression.ts";
import { environmentOf, type CelPhase } from "../cel/phases.ts";
import type { ApplyResult, Resource, ResourceUpdate } from "../ir/resource.ts";
import type { Bind } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { OwnListeners } from "../lib/own-listeners.ts";
import { monotonicMs } from "../lib/monotonic.ts";
import { createPasswordChecker } from "../lib/password/checker.ts";
import { resourceOf, type Resource as Reporter } from "../telemetry/otlp/resource.ts";
import { createUpstream } from "./upstream/client.ts";
import { DestinationGuard } from "./upstream/dial/destination-guard.ts";
import { createResolver } from "./upstream/dial/dns.ts";
import type { ProxyLocality } from "./balancing/endpoints.ts";
import type { EndpointDump } from "./balancing/endpoint-dump.ts";
import { BackendRegistry } from "./backends/registry.ts";
import { Binds, type OpenListener } from "./listeners/binds.ts";
import { createCallouts } from "./callouts/callouts.ts";
import { Configuration } from "./configuration.ts";
import { BODY_LIMIT_BYTES } from "./pipeline/body.ts";
import { PolicySet } from "./pipeline/policy-set.ts";
import { createConnectionRecorder, meterOf } from "./observability/record-connection.ts";
import { healthReadings, poolReadings } from "./observability/gauge-callbacks.ts";
import { createRecorder, type Telemetry } from "./observability/record.ts";
import { Exporters } from "./observability/exporters.ts";
import { workloadSocket } from "./spiffe/endpoint.ts";
import { WorkloadApi, type WorkloadApiDump } from "./spiffe/workload-api.ts";
import { allocateShared, openShared, type SharedState } from "./workers/shared-state.ts";

export interface ProxyOptions {
  readonly bindAddress: string;
  readonly log: Logger;
  /** The port to open for a Bind's port; 0 lets the system choose. By default the port itself. */
  readonly ports?: (bindPort: number) => number;
  /** `env.podName` of expressions; by default the name of the host, which in Kubernetes is the pod's. */
  readonly podName?: string;
  /** Addresses and ranges whose X-Forwarded headers are kept where no policy names others. */
  readonly trustedProxies?: readonly string[];
  readonly nowMs?: () => number;
  /** For what waits: the end of connections. */
  readonly clock?: Clock;
  readonly connectTimeoutMs?: number;
  /** What counts once for several threads; without it this one is alone. */
  readonly shared?: SharedState;
  /** In place of `ports`, for a thread that opens its ports together with others. */
  readonly portOf?: (bind: Bind) => Promise<number>;
  /** Where it runs, for Services that prefer what is near. */
  readonly whereabouts?: ProxyLocality;
  /** In [0, 1). */
  readonly random?: () => number;
  /** Attributes of this data plane in what it exports; by default its name alone. */
  readonly resource?: Reporter;
  /** Where the SPIFFE workload API is, "unix:///path" or "tcp://address:port"; without it there are no identities. */
  readonly spiffeEndpoint?: string;
  /** Listeners of this process that traffic must not reach. */
  readonly ownListeners?: OwnListeners;
  /** Access log and metrics; without it nothing is recorded. */
  readonly telemetry?: Telemetry;
}

export interface ProxyState {
  readonly resources: readonly Resource[];
  readonly listeners: readonly OpenListener[];
  readonly endpoints: readonly EndpointDump[];
  /** null when nothing needs one. */
  readonly workloadIdentity: WorkloadApiDump | null;
}

export interface Proxy {
  /** Applies what can be applied, atomically for requests; names what cannot. One call at a time, in order. */
  apply(update: ResourceUpdate): Promise<ApplyResult>;
  listeners(): readonly OpenListener[];
  /** For dumps; resources still hold their secrets. */
  state(): Promise<ProxyState>;
  /** Brings the metrics up to date, where they are counted elsewhere. */
  refresh(): Promise<void>;
  /** Each connection is told to end with the answers under way. New ones are taken, and told the same. */
  announce(): void;
  /** Announces, stops accepting; resolves when every connection is gone. */
  drain(): Promise<void>;
  /** Cuts what is left off, hands over what there is to report about it, and ends everything; takes five seconds at most. */
  end(): Promise<void>;
  /** Ends everything now. */
  close(): void;
}

/** From the look-up of a name to a usable connection, TLS included. */
const CONNECT_TIMEOUT_MS = 11_000;

export function createProxy(options: ProxyOptions): Proxy {
  const { log } = options;
  const nowMs = options.nowMs ?? monotonicMs;
  const shared = options.shared ?? openShared(allocateShared(1), 0);
  const { podName = hostname(), random = Math.random } = options;
  const resolver = createResolver();
  const connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
  const clock = options.clock ?? systemClock;
  const identities: WorkloadApi = new WorkloadApi({
    endpoint: options.spiffeEndpoint,
    log,
    clock,
    onChange() {
      upstream.identityChanged();
      callouts.identityChanged();
    },
  });
  const { metrics } = options.telemetry ?? {};
  const guard = new DestinationGuard({
    ownListeners: options.ownListeners,
    workloadSocket: workloadSocket(options.spiffeEndpoint),
  });
  const upstream = createUpstream({ resolver, guard, connectTimeoutMs, identities, onConnected: metrics?.connected });
  const passwords = createPasswordChecker();
  const callouts = createCallouts({
    upstream,
    names: resolver,
    guard,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    callTarget: (key) => backends.callee(key),
    identities,
    onCalled: metrics?.called,
  });
  const policies = new PolicySet({
    log,
    nowMs,
    expression: lenientExpression,
    passwords,
    slots: shared.buckets,
    callout: (service, subtype) => callouts.open(service, subtype),
  });
  const backends = new BackendRegistry({
    log,
    upstream,
    policies,
    expression: lenientExpression,
    slots: shared.endpoints,
    locality: options.whereabouts ?? { zone: "", node: "" },
    random,
    nowMs,
    identities,
    replica: shared.replica,
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
  const configuration = new Configuration({
    log,
    policies,
    backends,
    exporters,
    trustedProxies,
    identities,
    podName,
    random,
  });
  metrics?.reading("endpoint_health", () => healthReadings(backends.dump()));
  metrics?.reading("upstream_pool_connections", () => poolReadings(upstream));
  const binds = new Binds({
    log,
    clock,
    bindAddress: options.bindAddress,
    replica: shared.replica,
    podName,
    configuration,
    upstream,
    onFinished: createRecorder(options.telemetry, shared.ids, (bind) => configuration.secretParametersOf(bind)),
    onConnectionFinished: createConnectionRecorder(options.telemetry, shared.ids),
    meterOf: (bind) => meterOf(options.telemetry, bind),
    portOf: options.portOf ?? ((bind) => options.ports?.(bind.port) ?? bind.port),
    sharesPorts: options.portOf !== undefined,
  });
  let queue: Promise<unknown> = Promise.resolve();

  const apply = async (update: ResourceUpdate): Promise<ApplyResult> => {
    const refused = configuration.apply(update);
    // What needs an identity from now on does not fail only because the agent has had no time to answer.
    await identities.settled();
    return { refused: [...refused, ...(await binds.settle())] };
  };
  const close = (): void => {
    binds.close();
    identities.close();
    callouts.close();
    upstream.close();
    resolver.close();
    passwords.close();
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
      });
    },
    refresh: () => Promise.resolve(),
    announce: () => binds.announce(),
    drain: () => binds.drain(),
    async end() {
      binds.close();
      await binds.drain();
      // What was on the sockets hears of their end a turn later.
      await new Promise(setImmediate);
      await exporters.end();
      close();
    },
    close,
  };
}

/** An expression that does not compile fails whenever it runs; the rule that holds it decides what that means. */
function lenientExpression(source: string, place: CelPhase): Expression {
  try {
    return compileExpression(source, environmentOf(place));
  } catch (error) {
    return failingExpression(source, messageOf(error));
  }
}
