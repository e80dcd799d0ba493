/**
 * The data plane. In: updates of resources. Out: sockets that serve. Not here: where resources come from, what objects
 * they were made of. A change never drops a connection or a request in flight.
 */
import { hostname } from "node:os";
import { compileExpression, failingExpression } from "../cel/compile-expression.ts";
import type { Expression } from "../cel/expression.ts";
import { environmentOf, type Place } from "../cel/places.ts";
import type { ApplyResult, Resource, ResourceUpdate } from "../ir/resource.ts";
import type { Bind } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { monotonicMs } from "../lib/monotonic.ts";
import { createPasswordChecker } from "../lib/password/checker.ts";
import { createUpstream } from "./backends/client.ts";
import { createResolver } from "./backends/dns.ts";
import type { Whereabouts } from "./backends/endpoints.ts";
import { BackendRegistry, type ByteDestination, type EndpointDump } from "./backends/registry.ts";
import { createCallouts } from "./callouts/callouts.ts";
import { Configuration } from "./configuration.ts";
import { acceptorOf, type Acceptor } from "./listeners/acceptor.ts";
import { openBindSocket, type BindSocket } from "./listeners/bind.ts";
import { Announced } from "./listeners/announced.ts";
import type { Frontend } from "./listeners/frontend.ts";
import { createHttp1 } from "./listeners/http1.ts";
import { createHttp2 } from "./listeners/http2.ts";
import { TcpEngine, type TcpVisit } from "./listeners/tcp.ts";
import { BODY_LIMIT_BYTES } from "./pipeline/body.ts";
import { PolicySet } from "./pipeline/policy-set.ts";
import { createConnectionRecorder } from "./record-connection.ts";
import { createRecorder, type Telemetry } from "./record.ts";
import { allocateShared, openShared, type SharedState } from "./workers/shared-state.ts";

export interface ProxyOptions {
  readonly bindAddress: string;
  readonly log: Logger;
  /** The port to open for a Bind's port; 0 lets the system choose. By default the port itself. */
  readonly ports?: (bindPort: number) => number;
  /** `env.podName` of expressions; by default the name of the host, which in Kubernetes is the pod's. */
  readonly podName?: string;
  readonly nowMs?: () => number;
  readonly connectTimeoutMs?: number;
  /** What counts once for several threads; without it this one is alone. */
  readonly shared?: SharedState;
  /** Where it runs, for Services that prefer what is near. */
  readonly whereabouts?: Whereabouts;
  /** In [0, 1). */
  readonly random?: () => number;
  /** Access log and metrics; without it nothing is recorded. */
  readonly telemetry?: Telemetry;
}

export interface OpenListener {
  readonly bind: string;
  readonly gateway: string;
  /** Port of the Bind. */
  readonly port: number;
  readonly boundPort: number;
}

export interface ProxyState {
  readonly resources: readonly Resource[];
  readonly listeners: readonly OpenListener[];
  readonly endpoints: readonly EndpointDump[];
}

export interface Proxy {
  /** Applies what can be applied, atomically for requests; names what cannot. One call at a time, in order. */
  apply(update: ResourceUpdate): Promise<ApplyResult>;
  listeners(): readonly OpenListener[];
  /** For dumps; resources still hold their secrets. */
  state(): ProxyState;
  /** Stops accepting; resolves when every connection is gone. */
  drain(): Promise<void>;
  /** Ends everything now. */
  close(): void;
}

/** From the look-up of a name to a usable connection, TLS included. */
const CONNECT_TIMEOUT_MS = 11_000;

interface OpenBind {
  readonly message: Bind;
  readonly listener: BindSocket;
  readonly acceptor: Acceptor;
}

export function createProxy(options: ProxyOptions): Proxy {
  const { log } = options;
  const nowMs = options.nowMs ?? monotonicMs;
  const shared = options.shared ?? openShared(allocateShared(1), 0);
  const podName = options.podName ?? hostname();
  const resolver = createResolver();
  const connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
  const upstream = createUpstream({ resolver, connectTimeoutMs });
  const passwords = createPasswordChecker();
  const callouts = createCallouts({
    upstream,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    callee: (key) => backends.callee(key),
  });
  const policies = new PolicySet({
    log,
    nowMs,
    expression: lenientExpression,
    passwords,
    slots: shared.buckets,
    callout: (service) => callouts.open(service),
  });
  const backends = new BackendRegistry({
    log,
    upstream,
    policies,
    expression: lenientExpression,
    slots: shared.endpoints,
    whereabouts: options.whereabouts ?? { zone: "", node: "" },
    random: options.random ?? Math.random,
    nowMs,
  });
  const configuration = new Configuration({ log, policies, backends });
  options.telemetry?.metrics?.gauge("endpoint_health", "Health of an endpoint, 0 to 1.", () =>
    backends.dump().map(({ backend, endpoint, health }) => ({ labels: { backend, endpoint }, value: health })),
  );
  const record = createRecorder(options.telemetry);
  const recordConnection = createConnectionRecorder(options.telemetry);
  const open = new Map<string, OpenBind>();
  /** Sockets of removed Binds whose last connections are still served. */
  const draining = new Set<BindSocket>();
  let queue: Promise<unknown> = Promise.resolve();
  let stopped = false;

  const openBind = async (message: Bind): Promise<void> => {
    const port = options.ports?.(message.port) ?? message.port;
    const { key: bind, gateway } = message;
    const env = { podName, namespace: gateway?.namespace ?? "", gateway: gateway?.name ?? "" };
    const frontend = (): Frontend => configuration.frontendOf(bind);
    const announced = new Announced();
    const engine = { bind, env, announced, log, frontend, stage: configuration.stageOf(bind), onFinished: record };
    const http1 = createHttp1(engine);
    const http2 = createHttp2(engine);
    const choose = (visit: TcpVisit): ByteDestination => configuration.bytesOf(bind, visit);
    const tcp = new TcpEngine({ log, bind, upstream, choose, onFinished: recordConnection });
    const acceptor = acceptorOf(message.protocol, {
      log,
      env,
      announced,
      frontend,
      tls: () => configuration.tlsOf(bind),
      http1,
      http2,
      tcp,
      // Keys are "port/namespace/gateway".
      bindOf: (other) => open.get(`${other}${bind.slice(bind.indexOf("/"))}`)?.acceptor,
    });
    const { bindAddress: address } = options;
    const listener = await openBindSocket({
      address,
      port,
      frontend,
      accept: acceptor.accept,
      engines: [http1, http2],
    });
    open.set(bind, { message, listener, acceptor });
  };
  /** Opens and closes sockets until they are as the Binds say. */
  const settleBinds = async (refused: ApplyResult["refused"][number][]): Promise<void> => {
    const wanted = configuration.binds();
    for (const [key, { listener, message }] of open) {
      const now = wanted.get(key);
      if (now?.port === message.port && now.protocol === message.protocol) continue;
      open.delete(key);
      draining.add(listener);
      void listener.drain().then(() => draining.delete(listener));
    }
    for (const bind of wanted.values()) {
      if (open.has(bind.key) || stopped) continue;
      try {
        await openBind(bind);
      } catch (error) {
        refused.push({
          type: "Bind",
          key: bind.key,
          reason: `port ${bind.port} cannot be opened: ${messageOf(error)}`,
        });
      }
    }
  };
  const apply = async (update: ResourceUpdate): Promise<ApplyResult> => {
    const refused = [...configuration.apply(update)];
    await settleBinds(refused);
    return { refused };
  };
  const listeners = (): OpenListener[] =>
    [...open.values()].map(({ message, listener }) => ({
      bind: message.key,
      gateway: `${message.gateway?.namespace ?? ""}/${message.gateway?.name ?? ""}`,
      port: message.port,
      boundPort: listener.boundPort,
    }));

  return {
    apply(update) {
      const done = queue.then(() => apply(update));
      queue = done.catch(() => undefined);
      return done;
    },
    listeners,
    state: () => ({ resources: [...configuration.resources()], listeners: listeners(), endpoints: backends.dump() }),
    async drain() {
      stopped = true;
      await Promise.all([...open.values()].map(({ listener }) => listener.drain()));
      await Promise.all([...draining].map((listener) => listener.drain()));
      callouts.close();
      upstream.close();
      resolver.close();
      passwords.close();
    },
    close() {
      stopped = true;
      for (const { listener } of open.values()) listener.close();
      for (const listener of draining) listener.close();
      open.clear();
      callouts.close();
      upstream.close();
      resolver.close();
      passwords.close();
    },
  };
}

/** An expression that does not compile fails whenever it runs; the rule that holds it decides what that means. */
function lenientExpression(source: string, place: Place): Expression {
  try {
    return compileExpression(source, environmentOf(place));
  } catch (error) {
    return failingExpression(source, messageOf(error));
  }
}
