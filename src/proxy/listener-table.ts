/**
 * The listeners in force, by Bind and host name: which one a request or a handshake means, and what each does with a request
 * before a route is chosen.
 */
import type { Listener } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "./errors.ts";
import type { FrontendSet } from "./frontends.ts";
import { gatewayOf } from "./listener-place.ts";
import { bindTls } from "./listeners/bind-tls.ts";
import { compileServerTls, type BindTls, type ServerTls } from "./listeners/server-tls.ts";
import type { BoundRule } from "./pipeline/bind-rule.ts";
import { compose } from "./pipeline/compose.ts";
import type { HttpExchange } from "./pipeline/http-exchange.ts";
import type { CompiledPolicy, PolicySet } from "./pipeline/policy-set.ts";
import { pathOf } from "./pipeline/roots.ts";
import type { Stage } from "./pipeline/run.ts";
import { HostMap, hostOf } from "./router/host.ts";
import { ListenerRouter } from "./router/listener-router.ts";

export interface PlacedListener {
  readonly message: Listener;
  readonly router: ListenerRouter<BoundRule>;
  readonly tls: ServerTls | undefined;
  readonly stage: Stage;
}

export interface ListenerTableOptions {
  readonly policies: PolicySet;
  readonly frontends: FrontendSet;
}

export class ListenerTable {
  readonly #policies: PolicySet;
  readonly #frontends: FrontendSet;
  readonly #listeners = new Map<string, PlacedListener>();
  readonly #hosts = new Map<string, HostMap<PlacedListener>>();
  readonly #tls = new Map<string, BindTls>();

  constructor({ policies, frontends }: ListenerTableOptions) {
    this.#policies = policies;
    this.#frontends = frontends;
  }

  get(key: string): PlacedListener | undefined {
    return this.#listeners.get(key);
  }

  /** @param gateway "namespace/name" */
  keysOfGateway(gateway: string): string[] {
    return this.#keys(({ message }) => gatewayOf(message) === gateway);
  }

  keysOfBind(bind: string): string[] {
    return this.#keys(({ message }) => message.bind === bind);
  }

  /** @param host in lower case, without a port */
  find(bind: string, host: string): PlacedListener | undefined {
    return this.#hosts.get(bind)?.find(host);
  }

  /** @throws ProxyError listener_not_found; misdirected when the handshake chose another listener than the request */
  findFor(bind: string, { originalHost, serverName }: HttpExchange): PlacedListener {
    const hosts = this.#hosts.get(bind);
    const listener = hosts?.find(hostOf(originalHost));
    if (listener === undefined) throw new ProxyError("listener_not_found");
    if (serverName !== undefined && hosts?.find(serverName.toLowerCase()) !== listener)
      throw new ProxyError("misdirected", { detail: `${serverName} was asked for, ${originalHost} is meant` });
    return listener;
  }

  /** Certificates of a Bind; the same object until one of its listeners changes. */
  tlsOf(bind: string): BindTls {
    let tls = this.#tls.get(bind);
    if (tls === undefined) {
      const all = [...this.#listeners.values()].filter(({ message }) => message.bind === bind);
      tls = bindTls(all, (name) => this.find(bind, name), this.#frontends.of(bind).tls);
      this.#tls.set(bind, tls);
    }
    return tls;
  }

  /** The policies above all routes of a listener, the Gateway's first. */
  levels(listener: Listener): (readonly CompiledPolicy[])[] {
    const { bind, key } = listener;
    const gateway = gatewayOf(listener);
    return [`gateway:${gateway}`, `bind:${bind}`, `listener:${key}`].map((target) => this.#policies.at(target));
  }

  /** Puts a listener in force, or again when a policy above it has changed. Its routes stay. */
  place(message: Listener): void {
    const { key, bind, hostname } = message;
    const router = this.#listeners.get(key)?.router ?? new ListenerRouter<BoundRule>();
    const placed: PlacedListener = {
      message,
      router,
      tls: message.tls === undefined ? undefined : compileServerTls(message.tls, this.#frontends.of(bind).tls),
      stage: this.#stage(message, router),
    };
    this.#listeners.set(key, placed);
    this.#tls.delete(bind);
    let hosts = this.#hosts.get(bind);
    if (hosts === undefined) this.#hosts.set(bind, (hosts = new HostMap()));
    hosts.set(hostname, placed);
  }

  /** Gives up the listener's host name, which another one may take in the same update. */
  withdraw(key: string): void {
    const old = this.#listeners.get(key);
    if (old === undefined) return;
    const { bind, hostname } = old.message;
    this.#tls.delete(bind);
    const hosts = this.#hosts.get(bind);
    if (hosts?.get(hostname) === old) hosts.set(hostname, undefined);
  }

  /** After `withdraw`. */
  remove(key: string): void {
    this.#listeners.delete(key);
  }

  #keys(fits: (listener: PlacedListener) => boolean): string[] {
    return [...this.#listeners].flatMap(([key, listener]) => (fits(listener) ? [key] : []));
  }

  #stage(message: Listener, router: ListenerRouter<BoundRule>): Stage {
    const { middlewares, captureBytes } = compose(this.#policies, this.levels(message), true);
    return {
      chain: middlewares,
      captureBytes,
      end: (exchange, run) => {
        const found = router.find(hostOf(exchange.host), pathOf(exchange.target), exchange);
        if (found === undefined) throw new ProxyError("route_not_found");
        const { rule, match } = found;
        exchange.route = rule.info;
        exchange.backendTimeoutMs = rule.backendTimeoutMs;
        exchange.matchedPrefix = match.path.kind === "prefix" ? match.path.text : undefined;
        return run.enter(rule.stage);
      },
    };
  }
}
