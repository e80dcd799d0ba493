/**
 * The configuration that serves: compiled resources and how they hang together. In: one update at a time. Out: for each
 * Bind the stage that a request enters. Everything here is synchronous, so a request sees a state before or after an
 * update and never one in between; a request in flight keeps the functions it started with.
 */
import type { Bind, HttpRoute, Listener } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError, isGwError, messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { ApplyResult, Resource, ResourceUpdate } from "../ir/resource.ts";
import type { BackendRegistry, ByteDestination } from "./backends/registry.ts";
import { checkSettings } from "./backends/settings.ts";
import { ProxyError } from "./errors.ts";
import { checkFrontend, FrontendSet } from "./frontends.ts";
import { gatewayOf, placeOf } from "./listener-place.ts";
import { bindTls } from "./listeners/bind-tls.ts";
import type { Frontend } from "./listeners/frontend.ts";
import { compileServerTls, type BindTls, type ServerTls } from "./listeners/server-tls.ts";
import type { TcpVisit } from "./listeners/tcp.ts";
import { bindRule, type BoundRule } from "./pipeline/bind-rule.ts";
import { compose } from "./pipeline/compose.ts";
import type { CompiledPolicy, PolicySet } from "./pipeline/policy-set.ts";
import type { HttpExchange } from "./pipeline/http-exchange.ts";
import { pathOf } from "./pipeline/roots.ts";
import type { Stage } from "./pipeline/run.ts";
import { HostMap, hostOf } from "./router/host.ts";
import { ListenerRouter } from "./router/listener-router.ts";
import type { Candidate } from "./router/precedence.ts";
import { TcpRouter } from "./router/tcp-router.ts";
import { compileRoute, refusingRoute, type CompiledRoute } from "./router/route.ts";

export interface ConfigurationOptions {
  readonly log: Logger;
  readonly policies: PolicySet;
  readonly backends: BackendRegistry;
  /** Where no policy names others. */
  readonly trustedProxies: readonly string[];
}

type Refusals = { readonly type: Resource["type"]; readonly key: string; readonly reason: string }[];

interface PlacedListener {
  readonly message: Listener;
  readonly router: ListenerRouter<BoundRule>;
  readonly tls: ServerTls | undefined;
  stage: Stage;
}

interface PlacedRoute {
  readonly route: CompiledRoute;
  /** Per listener, so that each can be taken back. */
  readonly bound: Map<string, readonly BoundRule[]>;
}

export class Configuration {
  readonly #options: ConfigurationOptions;
  readonly #resources = new Map<string, Resource>();
  readonly #binds = new Map<string, Bind>();
  readonly #listeners = new Map<string, PlacedListener>();
  readonly #routes = new Map<string, PlacedRoute>();
  readonly #routesOfListener = new Map<string, Set<string>>();
  readonly #hosts = new Map<string, HostMap<PlacedListener>>();
  readonly #tls = new Map<string, BindTls>();
  readonly #tcp = new TcpRouter();
  readonly #frontends: FrontendSet;

  constructor(options: ConfigurationOptions) {
    this.#options = options;
    this.#frontends = new FrontendSet(options);
  }

  /** How a Bind takes connections; the same object until a policy changes. */
  frontendOf(bind: string): Frontend {
    return this.#frontends.of(bind);
  }

  /** Everything in force, for dumps. */
  resources(): IterableIterator<Resource> {
    return this.#resources.values();
  }

  /** By key. */
  binds(): ReadonlyMap<string, Bind> {
    return this.#binds;
  }

  /** Entry of every request on a Bind. */
  stageOf(bind: string): Stage {
    return {
      chain: [],
      captureBytes: undefined,
      end: (exchange, run) => {
        const { bodyLimitBytes } = this.frontendOf(bind);
        exchange.requestLimitBytes = bodyLimitBytes;
        exchange.responseLimitBytes = bodyLimitBytes;
        const listener = this.#listenerFor(bind, exchange);
        exchange.listener = placeOf(bind, listener.message);
        return run.enter(listener.stage);
      },
    };
  }

  /** Certificates of a Bind; the same object until one of its listeners changes. */
  tlsOf(bind: string): BindTls {
    let tls = this.#tls.get(bind);
    if (tls === undefined) {
      const hosts = this.#hosts.get(bind);
      const all = [...this.#listeners.values()].filter(({ message }) => message.bind === bind);
      tls = bindTls(all, (name) => hosts?.find(name), this.frontendOf(bind).tls);
      this.#tls.set(bind, tls);
    }
    return tls;
  }

  /**
   * Where a connection goes that is passed on as bytes; what is found on the way is noted.
   * @throws ProxyError listener_not_found, route_not_found, backend_invalid, endpoint_unavailable, policy_refused
   */
  bytesOf({ key: bind, port }: Bind, visit: TcpVisit): ByteDestination {
    const { serverName } = visit;
    const listener = this.#hosts.get(bind)?.find(serverName);
    if (listener === undefined) throw new ProxyError("listener_not_found");
    visit.listener = placeOf(bind, listener.message);
    if (this.frontendOf(bind).closed) throw new ProxyError("policy_refused");
    const { route, pick } = this.#tcp.find(listener.message.key, serverName);
    const { namespace = "", name = "", kind = "" } = route.object ?? {};
    visit.route = { namespace, name, kind, rule: "0" };
    const asked = { host: `${serverName}:${port}`, scheme: "https" } as const;
    return this.#options.backends.byteDestination(pick(), asked, this.#levels(listener.message));
  }

  /** @throws ProxyError listener_not_found; misdirected when the handshake chose another listener than the request */
  #listenerFor(bind: string, { originalHost, serverName }: HttpExchange): PlacedListener {
    const hosts = this.#hosts.get(bind);
    const listener = hosts?.find(hostOf(originalHost));
    if (listener === undefined) throw new ProxyError("listener_not_found");
    if (serverName !== undefined && hosts?.find(serverName.toLowerCase()) !== listener)
      throw new ProxyError("misdirected", { detail: `${serverName} was asked for, ${originalHost} is meant` });
    return listener;
  }

  apply(update: ResourceUpdate): ApplyResult["refused"] {
    const refused: Refusals = [];
    const listeners = new Set<string>();
    const routes = new Set<string>();
    for (const { type, key } of update.removed)
      this.#attempt(refused, { type, key }, () => this.#remove(type, key, { listeners, routes }));
    for (const resource of inOrder(update.set)) {
      const { type, key } = resource;
      this.#attempt(refused, { type, key }, () => this.#set(resource, { listeners, routes }));
    }
    for (const key of listeners) {
      this.#placeListener(key);
      for (const route of this.#routesOfListener.get(key) ?? []) routes.add(route);
    }
    for (const key of routes) this.#attempt(refused, { type: "HttpRoute", key }, () => this.#placeRoute(key));
    return refused;
  }

  #attempt(refused: Refusals, id: Pick<Refusals[number], "type" | "key">, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof ConfigError))
        this.#options.log.error("resource failed", { key: id.key, error: messageOf(error) });
      refused.push({ ...id, reason: isGwError(error) ? error.message : `internal: ${messageOf(error)}` });
    }
  }

  #set(resource: Resource, dirty: { listeners: Set<string>; routes: Set<string> }): void {
    const { key } = resource;
    const { backends } = this.#options;
    switch (resource.type) {
      case "Bind":
        this.#binds.set(key, resource.message);
        break;
      case "Listener":
        if (resource.message.tls !== undefined) compileServerTls(resource.message.tls);
        this.#unhost(key);
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
      case "Policy":
        this.#setPolicy(resource, dirty);
        break;
    }
    this.#resources.set(`${resource.type} ${key}`, resource);
  }

  #setRoute(message: HttpRoute, dirty: { routes: Set<string> }): void {
    const { key } = message;
    try {
      this.#takeRoute(key, compileRoute(message), dirty);
    } catch (error) {
      if (!this.#resources.has(`HttpRoute ${key}`))
        this.#takeRoute(key, refusingRoute(message, messageOf(error)), dirty);
      throw error;
    }
  }

  #takeRoute(key: string, route: CompiledRoute, dirty: { routes: Set<string> }): void {
    this.#unplace(key);
    this.#routes.set(key, { route, bound: new Map() });
    for (const { listener } of route.message.parents)
      this.#routesOfListener.set(listener, (this.#routesOfListener.get(listener) ?? new Set()).add(key));
    dirty.routes.add(key);
  }

  #setPolicy(
    resource: Extract<Resource, { type: "Policy" }>,
    dirty: { listeners: Set<string>; routes: Set<string> },
  ): void {
    const { policies } = this.#options;
    const { message, version } = resource;
    try {
      checkSettings(message.backend);
      checkFrontend(message.frontend, policies);
      this.#policyTouched(policies.put(policies.compile(message, version)), dirty);
    } catch (error) {
      // A typing error in a policy must never open what it governs: closed, unless its last good version still serves.
      if (!this.#resources.has(`Policy ${message.key}`))
        this.#policyTouched(policies.put(policies.refusing(message, messageOf(error))), dirty);
      throw error;
    }
  }

  #remove(type: Resource["type"], key: string, dirty: { listeners: Set<string>; routes: Set<string> }): void {
    const { backends, policies } = this.#options;
    this.#resources.delete(`${type} ${key}`);
    switch (type) {
      case "Bind":
        this.#binds.delete(key);
        break;
      case "Listener":
        this.#unhost(key);
        dirty.listeners.add(key);
        break;
      case "HttpRoute":
        this.#unplace(key);
        this.#routes.delete(key);
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
      case "Policy":
        this.#policyTouched(policies.remove(key), dirty);
        break;
    }
  }

  #policyTouched(targets: readonly string[], dirty: { listeners: Set<string>; routes: Set<string> }): void {
    this.#frontends.changed();
    for (const target of targets) {
      const colon = target.indexOf(":");
      const name = target.slice(colon + 1).split("#", 1)[0] as string;
      switch (target.slice(0, colon)) {
        case "gateway":
          for (const [key, { message }] of this.#listeners) if (gatewayOf(message) === name) dirty.listeners.add(key);
          break;
        case "bind":
          for (const [key, { message }] of this.#listeners) if (message.bind === name) dirty.listeners.add(key);
          break;
        case "listener":
          dirty.listeners.add(name);
          break;
        case "route":
          dirty.routes.add(name);
          break;
        default:
          this.#options.backends.rebuild(name);
      }
    }
  }

  #placeListener(key: string): void {
    const resource = this.#resources.get(`Listener ${key}`);
    if (resource?.type !== "Listener") {
      this.#listeners.delete(key);
      return;
    }
    const { message } = resource;
    const router = this.#listeners.get(key)?.router ?? new ListenerRouter<BoundRule>();
    const { policies } = this.#options;
    const chain = compose(policies, this.#levels(message), true);
    const placed: PlacedListener = {
      message,
      router,
      tls: message.tls === undefined ? undefined : compileServerTls(message.tls, this.frontendOf(message.bind).tls),
      stage: {
        chain: chain.middlewares,
        captureBytes: chain.captureBytes,
        end: (exchange, run) => {
          const found = router.find(hostOf(exchange.host), pathOf(exchange.target), exchange);
          if (found === undefined) throw new ProxyError("route_not_found");
          const { rule, match } = found;
          exchange.route = rule.info;
          exchange.backendTimeoutMs = rule.backendTimeoutMs;
          exchange.matchedPrefix = match.path.kind === "prefix" ? match.path.text : undefined;
          return run.enter(rule.stage);
        },
      },
    };
    this.#listeners.set(key, placed);
    this.#tls.delete(message.bind);
    let hosts = this.#hosts.get(message.bind);
    if (hosts === undefined) this.#hosts.set(message.bind, (hosts = new HostMap()));
    hosts.set(message.hostname, placed);
  }

  #unhost(key: string): void {
    const old = this.#listeners.get(key);
    if (old !== undefined) this.#tls.delete(old.message.bind);
    const hosts = old === undefined ? undefined : this.#hosts.get(old.message.bind);
    if (old !== undefined && hosts?.get(old.message.hostname) === old) hosts.set(old.message.hostname, undefined);
  }

  #levels(listener: Listener): (readonly CompiledPolicy[])[] {
    const { policies } = this.#options;
    const gateway = gatewayOf(listener);
    const { bind, key } = listener;
    return [policies.at(`gateway:${gateway}`), policies.at(`bind:${bind}`), policies.at(`listener:${key}`)];
  }

  #placeRoute(key: string): void {
    const placed = this.#routes.get(key);
    if (placed === undefined) return;
    const { message, rules, name } = placed.route;
    const before = [...placed.bound.values()].flat();
    placed.bound.clear();
    for (const parent of message.parents) {
      const listener = this.#listeners.get(parent.listener);
      if (listener === undefined) continue;
      const bound = rules.map((rule) => this.#bind(rule, key, listener.message));
      placed.bound.set(parent.listener, bound);
      const candidates = rules.flatMap((rule, ruleIndex) =>
        rule.matches.map((match, matchIndex): Candidate<BoundRule> => {
          const { createdAtMs } = message;
          // One bound rule was made per rule, in order.
          return { match, createdAtMs, routeName: name, ruleIndex, matchIndex, rule: bound[ruleIndex] as BoundRule };
        }),
      );
      listener.router.put(key, parent.hostnames, candidates);
    }
    this.#release(before);
  }

  #bind(rule: CompiledRoute["rules"][number], routeKey: string, listener: Listener): BoundRule {
    const { policies, backends } = this.#options;
    const own = rule.message.name === "" ? [] : policies.at(`route:${routeKey}#${rule.message.name}`);
    const levels = [...this.#levels(listener), policies.at(`route:${routeKey}`), own];
    return bindRule(rule, { policies, backends, routeKey, levels });
  }

  #unplace(key: string): void {
    const placed = this.#routes.get(key);
    if (placed === undefined) return;
    for (const listener of placed.bound.keys()) this.#listeners.get(listener)?.router.remove(key);
    for (const { listener } of placed.route.message.parents) this.#routesOfListener.get(listener)?.delete(key);
    this.#release([...placed.bound.values()].flat());
    placed.bound.clear();
  }

  #release(rules: readonly BoundRule[]): void {
    for (const { slots } of rules) for (const slot of slots) this.#options.backends.release(slot);
  }
}

const RANK: Readonly<Record<Resource["type"], number>> = {
  Bind: 0,
  Policy: 1,
  Endpoints: 2,
  Backend: 3,
  Listener: 4,
  HttpRoute: 5,
  TcpRoute: 6,
};

function inOrder(resources: readonly Resource[]): Resource[] {
  return [...resources].sort((a, b) => RANK[a.type] - RANK[b.type]);
}
