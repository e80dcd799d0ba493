/**
 * The configuration in force: compiled resources and the links between them. createProxy applies one update at a time,
 * and Binds asks for the chain, frontend settings and certificates of each Bind.
 *
 * `apply` is synchronous, so that a request sees the state before or after an update and never one in between. A
 * request in flight keeps the functions that it started with. An update is incremental: `#set` and `#remove` compile
 * single resources and collect the listeners and routes that they affect (`Dirty`), which are linked anew at the end.
 *
 * A resource that does not compile is refused, and its last good version stays. Without one, a policy fails closed and
 * a route answers with an error: a typing error must never open what it governs.
 */
import type { Backend, Bind, HttpRoute } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError, isGwError, messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { ApplyResult, Resource, ResourceUpdate } from "../ir/resource.ts";
import type { BackendRegistry, ByteDestination } from "./backends/registry.ts";
import { checkSettings } from "./backends/settings.ts";
import { ProxyError } from "./exchange/errors.ts";
import type { Catalogs } from "./llm/cost/catalogs.ts";
import { checkFrontend, FrontendSet } from "./listeners/frontends.ts";
import { listenerNameOf } from "./listeners/listener-name.ts";
import { DelegationTable } from "./router/delegation.ts";
import { ListenerTable, type CompiledListener } from "./router/listener-table.ts";
import type { Frontend } from "./listeners/frontend.ts";
import { compileServerTls, type BindTls } from "./listeners/tls/server-tls.ts";
import type { TcpSession } from "./listeners/tcp/server.ts";
import type { PolicySet } from "./policies/policy-set.ts";
import type { HttpExchange } from "./pipeline/http-exchange.ts";
import type { Chain, ChainTerminal } from "./pipeline/chain-runner.ts";
import type { Exporters } from "./observability/exporters.ts";
import {
  explainPort,
  explainTcpRoute,
  traceFrontend,
  type ExplainedPort,
  type ExplainedRoute,
} from "./router/explain-route.ts";
import { RouteTable } from "./router/route-table.ts";
import { SecretParameters } from "./router/secret-parameters.ts";
import { TcpRouter } from "./router/tcp-router.ts";
import { compileRoute, failClosedRoute, type CompiledRoute } from "./router/route.ts";
import type { IdentitySource } from "./spiffe/workload-api.ts";

export interface ConfigurationOptions {
  readonly log: Logger;
  readonly policies: PolicySet;
  readonly backends: BackendRegistry;
  readonly catalogs: Catalogs;
  readonly exporters: Exporters;
  /** The CEL variable `env.podName`. */
  readonly podName: string;
  /** Returns a number in [0, 1), like Math.random. */
  readonly random: () => number;
  /** Applies where no policy names trusted proxies. */
  readonly trustedProxies: readonly string[];
  readonly identities: IdentitySource;
}

type Rejections = { readonly type: Resource["type"]; readonly key: string; readonly reason: string }[];

/** Keys of listeners and routes to link anew at the end of an update. */
interface Dirty {
  readonly listeners: Set<string>;
  readonly routes: Set<string>;
  readonly backends: Set<string>;
}

export class Configuration {
  readonly #options: ConfigurationOptions;
  readonly #resources = new Map<string, Resource>();
  readonly #binds = new Map<string, Bind>();
  readonly #tcp = new TcpRouter();
  readonly #frontends: FrontendSet;
  readonly #listeners: ListenerTable;
  readonly #routes: RouteTable;
  readonly #secretParameters: SecretParameters;

  constructor(options: ConfigurationOptions) {
    this.#options = options;
    const { policies, backends, identities } = options;
    this.#frontends = new FrontendSet(options);
    const delegations = new DelegationTable({ policies, backends });
    this.#listeners = new ListenerTable({ policies, frontends: this.#frontends, identities, delegations });
    this.#routes = new RouteTable({ policies, backends, listeners: this.#listeners, delegations });
    this.#secretParameters = new SecretParameters({ policies, listeners: this.#listeners, routes: this.#routes });
  }

  /** Returns the frontend settings of a Bind; the same object until one of its policies changes. */
  frontendOf(bind: string): Frontend {
    return this.#frontends.of(bind);
  }

  /** Returns the header fields, in lower case, in which policies expect credentials. */
  secretHeaders(): ReadonlySet<string> {
    return this.#options.policies.secretHeaders();
  }

  /** Returns the query parameters whose values are masked in logs and traces. */
  secretParametersOf(bind: string): ReadonlySet<string> {
    return this.#secretParameters.get(bind);
  }

  /** Returns all resources in force, for dumps. */
  resources(): IterableIterator<Resource> {
    return this.#resources.values();
  }

  /** Explains the policies of the routes of a name, of each kind, for operators. @param name "namespace/name" */
  explain(name: string): ExplainedRoute[] {
    const backendOf = (key: string): Backend | undefined => {
      const resource = this.#resources.get(`Backend ${key}`);
      return resource?.type === "Backend" ? resource.message : undefined;
    };
    const { policies } = this.#options;
    const raw = this.#tcp.named(name).flatMap((route) =>
      route.parents.flatMap(({ listener }) => {
        const message = this.#listeners.get(listener)?.message;
        if (message === undefined) return [];
        const outer = this.#listeners.levels(message);
        return [explainTcpRoute(route, { listener, outer, policies, backendOf })];
      }),
    );
    return [...this.#routes.explain(name, backendOf), ...raw];
  }

  /** Explains how the ports of a Gateway take connections, for operators. @param name "namespace/name" */
  explainGateway(name: string): ExplainedPort[] {
    const { policies } = this.#options;
    return [...this.#binds.values()]
      .filter(({ gateway }) => `${gateway?.namespace}/${gateway?.name}` === name)
      .map((bind) => explainPort(bind, name, policies))
      .sort((one, other) => one.port - other.port);
  }

  /** Returns the Binds by key. */
  binds(): ReadonlyMap<string, Bind> {
    return this.#binds;
  }

  /**
   * Returns the chain that every request on a Bind enters: it selects the listener and begins the trace. When the
   * trace's sampling expression reads the body, the start of the body is buffered first (`holding`).
   */
  chainOf(bind: string): Chain {
    const decide: ChainTerminal = (exchange, run) => {
      let listener: CompiledListener;
      try {
        listener = this.#selectListener(bind, exchange);
      } finally {
        exchange.trace = exchange.reports.tracing?.begin(exchange);
        exchange.debug?.record({ type: "traceSampling", decision: exchange.trace !== undefined });
      }
      return run.enter(listener.chain);
    };
    const holding: Chain = { middlewares: [], captureBytes: 0, terminal: decide };
    return {
      middlewares: [],
      captureBytes: undefined,
      terminal: (exchange, run) => {
        const { bodyLimitBytes } = this.frontendOf(bind);
        if (exchange.debug !== undefined) traceFrontend(exchange.debug, bind, this.#options.policies);
        exchange.requestLimitBytes = bodyLimitBytes;
        exchange.responseLimitBytes = bodyLimitBytes;
        const { tracing } = exchange.reports;
        if (tracing === undefined) return run.enter(this.#selectListener(bind, exchange).chain);
        return tracing.samplesBody ? run.enter(holding) : decide(exchange, run);
      },
    };
  }

  /** @throws ProxyError listener_not_found, misdirected */
  #selectListener(bind: string, exchange: HttpExchange): CompiledListener {
    const listener = this.#listeners.findFor(bind, exchange);
    exchange.listener = listenerNameOf(bind, listener.message);
    exchange.destination = listener;
    return listener;
  }

  /** Returns the TLS settings of a Bind; the same object until one of its listeners changes. */
  tlsOf(bind: string): BindTls {
    return this.#listeners.tlsOf(bind);
  }

  /**
   * Selects the backend of a TCP session, and notes listener, route and backend in the session as it finds them.
   * @throws ProxyError listener_not_found, route_not_found, backend_invalid, endpoint_unavailable, policy_refused
   */
  selectByteDestination({ key: bind, port }: Bind, session: TcpSession): ByteDestination {
    const { serverName } = session;
    const listener = this.#listeners.find(bind, serverName);
    if (listener === undefined) throw new ProxyError("listener_not_found");
    session.listener = listenerNameOf(bind, listener.message);
    if (this.frontendOf(bind).closed) throw new ProxyError("policy_refused");
    const { route, pick } = this.#tcp.find(listener.message.key, serverName);
    const { namespace = "", name = "", kind = "" } = route.object ?? {};
    session.route = { namespace, name, kind, rule: "0" };
    const asked = { host: `${serverName}:${port}`, scheme: "https", client: session.peer } as const;
    const { backends } = this.#options;
    const backend = pick();
    session.backend = { ...backends.identityOf(backend), protocol: "tcp" };
    return backends.byteDestination(backend, asked, this.#listeners.levels(listener.message));
  }

  apply(update: ResourceUpdate): ApplyResult["refused"] {
    const refused: Rejections = [];
    const dirty: Dirty = { listeners: new Set(), routes: new Set(), backends: new Set() };
    for (const { type, key } of update.removed)
      this.#attempt(refused, { type, key }, () => this.#remove(type, key, dirty));
    for (const resource of inOrder(update.set)) {
      const { type, key } = resource;
      this.#attempt(refused, { type, key }, () => this.#set(resource, dirty));
    }
    // Many models may have changed at once, and each Backend that offers some of them is compiled whole.
    for (const key of dirty.backends) this.#options.backends.rebuild(key);
    for (const key of dirty.listeners) {
      this.#putListener(key);
      for (const route of this.#routes.ofListener(key)) dirty.routes.add(route);
    }
    for (const key of dirty.routes) this.#attempt(refused, { type: "HttpRoute", key }, () => this.#routes.link(key));
    this.#frontends.keep(this.#binds);
    this.#secretParameters.clear();
    return refused;
  }

  #attempt(refused: Rejections, id: Pick<Rejections[number], "type" | "key">, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof ConfigError))
        this.#options.log.error("resource failed", { key: id.key, error: messageOf(error) });
      refused.push({ ...id, reason: isGwError(error) ? error.message : `internal: ${messageOf(error)}` });
    }
  }

  #set(resource: Resource, dirty: Dirty): void {
    const { key } = resource;
    const { backends } = this.#options;
    switch (resource.type) {
      case "Bind":
        this.#binds.set(key, resource.message);
        break;
      case "Listener":
        if (resource.message.tls !== undefined) compileServerTls(resource.message.tls, this.#options.identities);
        this.#listeners.withdraw(key);
        dirty.listeners.add(key);
        break;
      case "HttpRoute":
        this.#setRoute(resource.message, dirty);
        break;
      case "TcpRoute":
        this.#tcp.put(resource.message);
        break;
      case "Backend":
        backends.put(resource.message);
        break;
      case "Endpoints":
        backends.putEndpoints(key, resource.message);
        break;
      case "Model":
        for (const backend of backends.models.put(resource.message)) dirty.backends.add(backend);
        break;
      case "Policy":
        this.#setPolicy(resource, dirty);
        break;
      case "ModelCatalogSource":
        this.#options.catalogs.put(resource.message);
        break;
    }
    this.#resources.set(`${resource.type} ${key}`, resource);
  }

  #setRoute(message: HttpRoute, dirty: Dirty): void {
    const { key } = message;
    try {
      this.#putRoute(compileRoute(message), dirty);
    } catch (error) {
      if (!this.#resources.has(`HttpRoute ${key}`)) this.#putRoute(failClosedRoute(message, messageOf(error)), dirty);
      throw error;
    }
  }

  #putRoute(route: CompiledRoute, dirty: Dirty): void {
    this.#routes.put(route);
    dirty.routes.add(route.message.key);
  }

  #setPolicy(resource: Extract<Resource, { type: "Policy" }>, dirty: Dirty): void {
    const { policies } = this.#options;
    const { message, version } = resource;
    try {
      checkSettings(message.backend, this.#options.identities);
      checkFrontend(message.frontend, policies);
      this.#markChanged(policies.put(policies.compile(message, version)), dirty);
    } catch (error) {
      // Fail closed, unless the last good version still serves: a typing error must never open what the policy governs.
      if (!this.#resources.has(`Policy ${message.key}`))
        this.#markChanged(policies.put(policies.failClosed(message, messageOf(error))), dirty);
      throw error;
    }
  }

  #remove(type: Resource["type"], key: string, dirty: Dirty): void {
    const { backends, policies } = this.#options;
    this.#resources.delete(`${type} ${key}`);
    switch (type) {
      case "Bind":
        this.#binds.delete(key);
        break;
      case "Listener":
        this.#listeners.withdraw(key);
        dirty.listeners.add(key);
        break;
      case "HttpRoute":
        this.#routes.remove(key);
        break;
      case "TcpRoute":
        this.#tcp.remove(key);
        break;
      case "Backend":
        backends.remove(key);
        break;
      case "Endpoints":
        backends.putEndpoints(key, undefined);
        break;
      case "Model":
        for (const backend of backends.models.remove(key)) dirty.backends.add(backend);
        break;
      case "Policy":
        this.#markChanged(policies.remove(key), dirty);
        break;
      case "ModelCatalogSource":
        this.#options.catalogs.remove(key);
        break;
    }
  }

  #markChanged(targets: readonly string[], dirty: Dirty): void {
    this.#frontends.changed();
    for (const target of targets) {
      const colon = target.indexOf(":");
      const name = target.slice(colon + 1).split("#", 1)[0] as string;
      switch (target.slice(0, colon)) {
        case "gateway":
          for (const key of this.#listeners.keysOfGateway(name)) dirty.listeners.add(key);
          break;
        case "bind":
          for (const key of this.#listeners.keysOfBind(name)) dirty.listeners.add(key);
          break;
        case "listener":
          dirty.listeners.add(name);
          break;
        case "route":
          dirty.routes.add(name);
          break;
        default:
          this.#options.backends.rebuild(name);
          for (const route of this.#routes.ofBackend(name)) dirty.routes.add(route);
      }
    }
  }

  #putListener(key: string): void {
    const resource = this.#resources.get(`Listener ${key}`);
    if (resource?.type === "Listener") this.#listeners.put(resource.message);
    else this.#listeners.remove(key);
  }
}

const RANK: Readonly<Record<Resource["type"], number>> = {
  Bind: 0,
  Policy: 1,
  Endpoints: 2,
  Model: 2,
  ModelCatalogSource: 2,
  Backend: 3,
  Listener: 4,
  HttpRoute: 5,
  TcpRoute: 6,
};

function inOrder(resources: readonly Resource[]): Resource[] {
  return [...resources].sort((a, b) => RANK[a.type] - RANK[b.type]);
}
