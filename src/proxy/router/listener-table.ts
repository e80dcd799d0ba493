/**
 * The listeners in force, by Bind and host name. It finds the listener of a request or of a TLS handshake, holds the
 * TLS settings of each Bind, and builds the chain that runs on a request before a route is chosen.
 *
 *     Bind ──host name──▶ CompiledListener ──▶ chain of Gateway and listener policies ──▶ router ──▶ chain of the rule
 */
import type { Listener } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { DebugTrace } from "../exchange/debug-trace.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { FrontendSet } from "../listeners/frontends.ts";
import { gatewayNameOf } from "../listeners/listener-name.ts";
import { bindTls } from "../listeners/tls/bind-tls.ts";
import { compileServerTls, type BindTls, type ServerTls } from "../listeners/tls/server-tls.ts";
import { isWellKnown, parseMetadataPath } from "../mcp/metadata/paths.ts";
import type { BoundRule } from "./bind-rule.ts";
import { compose } from "../pipeline/compose.ts";
import type { HttpExchange, RequestDestination } from "../pipeline/http-exchange.ts";
import type { CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import { pathOf, hostOf } from "../../lib/network/request-target.ts";
import type { Chain } from "../pipeline/chain-runner.ts";
import type { DelegationTable } from "./delegation.ts";
import { HostMap } from "./host.ts";
import { ListenerRouter } from "./listener-router.ts";
import type { Routable } from "./match.ts";
import type { Candidate } from "./precedence.ts";
import { routeText } from "./route.ts";
import type { IdentitySource } from "../spiffe/workload-api.ts";

export interface CompiledListener extends RequestDestination {
  readonly message: Listener;
  readonly router: ListenerRouter<BoundRule>;
  readonly tls: ServerTls | undefined;
  readonly chain: Chain;
}

/** The listeners of one Bind. */
interface BoundListeners {
  readonly hosts: HostMap<CompiledListener>;
  /** Made at the first handshake after a change of a listener. */
  tls: BindTls | undefined;
}

export interface ListenerTableOptions {
  readonly policies: PolicySet;
  readonly frontends: FrontendSet;
  readonly identities: IdentitySource;
  readonly delegations: DelegationTable;
}

export class ListenerTable {
  readonly #policies: PolicySet;
  readonly #frontends: FrontendSet;
  readonly #identities: IdentitySource;
  readonly #delegations: DelegationTable;
  readonly #listeners = new Map<string, CompiledListener>();
  readonly #binds = new Map<string, BoundListeners>();

  constructor({ policies, frontends, identities, delegations }: ListenerTableOptions) {
    this.#policies = policies;
    this.#frontends = frontends;
    this.#identities = identities;
    this.#delegations = delegations;
  }

  get(key: string): CompiledListener | undefined {
    return this.#listeners.get(key);
  }

  /** @param gateway "namespace/name" */
  keysOfGateway(gateway: string): string[] {
    return this.#keys(({ message }) => gatewayNameOf(message) === gateway);
  }

  keysOfBind(bind: string): string[] {
    return this.#keys(({ message }) => message.bind === bind);
  }

  /** @param host in lower case, without a port */
  find(bind: string, host: string): CompiledListener | undefined {
    return this.#binds.get(bind)?.hosts.find(host);
  }

  /**
   * Finds the listener of a request.
   * @throws ProxyError listener_not_found; misdirected (421, RFC 9110 §15.5.20) when SNI has chosen another listener
   * than the authority of the request
   */
  findFor(bind: string, { originalHost, serverName }: HttpExchange): CompiledListener {
    const hosts = this.#binds.get(bind)?.hosts;
    const listener = hosts?.find(hostOf(originalHost));
    if (listener === undefined) throw new ProxyError("listener_not_found");
    if (serverName !== undefined && hosts?.find(serverName.toLowerCase()) !== listener)
      throw new ProxyError("misdirected", { detail: `${serverName} was asked for, ${originalHost} is meant` });
    return listener;
  }

  /** Returns the TLS settings of a Bind; the same object until one of its listeners changes. */
  tlsOf(bind: string): BindTls {
    const bound = this.#binds.get(bind);
    if (bound?.tls !== undefined) return bound.tls;
    const all = [...this.#listeners.values()].filter(({ message }) => message.bind === bind);
    const tls = bindTls(all, (name) => this.find(bind, name), this.#frontends.of(bind).tls);
    // Connections of a removed Bind ask as well, and must not recreate its entry.
    if (bound !== undefined) bound.tls = tls;
    return tls;
  }

  /** Returns the policies above all routes of a listener: those of the Gateway, the Bind and the listener. */
  levels(listener: Listener): (readonly CompiledPolicy[])[] {
    const { bind, key } = listener;
    const gateway = gatewayNameOf(listener);
    return [`gateway:${gateway}`, `bind:${bind}`, `listener:${key}`].map((target) => this.#policies.at(target));
  }

  /** Puts a listener in force, also again after a change of a policy above it. Its routes stay. */
  put(message: Listener): void {
    const { key, bind, hostname } = message;
    const router = this.#listeners.get(key)?.router ?? new ListenerRouter<BoundRule>();
    const place = { key, levels: () => this.levels(message) };
    const find: FindRule = (host, path, request) => {
      const found = router.find(host, path, request);
      if (found?.rule.compiled.delegation === undefined) return found;
      return this.#delegations.follow(place, found, { host, path, request });
    };
    const compiled: CompiledListener = {
      message,
      router,
      tls: message.tls && compileServerTls(message.tls, this.#identities, this.#frontends.of(bind).tls),
      chain: this.#compileChain(message, router, find),
      servesModels: (exchange) => leadsToModels(find, exchange),
    };
    this.#listeners.set(key, compiled);
    let bound = this.#binds.get(bind);
    if (bound === undefined) this.#binds.set(bind, (bound = { hosts: new HostMap(), tls: undefined }));
    bound.tls = undefined;
    bound.hosts.set(hostname, compiled);
  }

  /** Frees the host name of a listener, which another listener can take in the same update. */
  withdraw(key: string): void {
    const old = this.#listeners.get(key);
    if (old === undefined) return;
    const { bind, hostname } = old.message;
    const bound = this.#binds.get(bind);
    if (bound === undefined) return;
    bound.tls = undefined;
    if (bound.hosts.get(hostname) === old) bound.hosts.set(hostname, undefined);
    if (bound.hosts.isEmpty) this.#binds.delete(bind);
  }

  /** Removes a listener; `withdraw` must have been called before. */
  remove(key: string): void {
    this.#listeners.delete(key);
  }

  #keys(fits: (listener: CompiledListener) => boolean): string[] {
    return [...this.#listeners].flatMap(([key, listener]) => (fits(listener) ? [key] : []));
  }

  #compileChain(message: Listener, router: ListenerRouter<BoundRule>, find: FindRule): Chain {
    const { middlewares, captureBytes, origins } = compose(this.#policies, this.levels(message), true);
    return {
      middlewares,
      captureBytes,
      origins,
      terminal: (exchange, run) => {
        // From here on the rule says whose format errors have, and a request without one is answered in text.
        exchange.destination = undefined;
        exchange.debug?.request("gateway policies");
        const found = findRoute(find, exchange);
        if (exchange.debug !== undefined) traceRoute(exchange.debug, router, exchange, found);
        if (found === undefined) throw new ProxyError("route_not_found");
        const { rule, match } = found;
        exchange.route = rule.info;
        exchange.destination = rule;
        exchange.backendTimeoutMs = rule.backendTimeoutMs;
        exchange.matchedPath = match.path;
        rule.dropClaims(exchange);
        return run.enter(rule.chain);
      },
    };
  }
}

/** Finds the rule of the listener that serves a request, through any delegation. @throws ProxyError */
type FindRule = (host: string, path: string, request: Routable) => Candidate<BoundRule> | undefined;

/**
 * Returns whether the rule that the request would get leads to models. Asked while an error is answered, so it never
 * throws.
 */
function leadsToModels(find: FindRule, exchange: HttpExchange): boolean {
  try {
    return findRoute(find, exchange)?.rule.servesModels(exchange) === true;
  } catch (error) {
    // A match that takes too long leads nowhere.
    if (error instanceof ProxyError) return false;
    throw error;
  }
}

/** Routes in one event; a listener may have thousands. */
const MAX_EVALUATED = 64;

function traceRoute(
  debug: DebugTrace,
  router: ListenerRouter<BoundRule>,
  { host }: HttpExchange,
  found: Candidate<BoundRule> | undefined,
): void {
  const { info } = found?.rule ?? {};
  debug.record({
    type: "routeSelection",
    selectedRoute: info === undefined ? null : { route: routeText(info), rule: String(info.rule) },
    evaluatedRoutes: router.evaluated(hostOf(host), MAX_EVALUATED).map((rule) => routeText(rule.info)),
  });
}

function findRoute(find: FindRule, exchange: HttpExchange): Candidate<BoundRule> | undefined {
  const host = hostOf(exchange.host);
  const path = pathOf(exchange.target);
  const found = find(host, path, exchange);
  if (!isWellKnown(path) || isOwnRule(found)) return found;
  return findMetadataRule(find, host, path, exchange) ?? found;
}

/**
 * Finds the rule of the protected resource that a request for OAuth metadata is about. Routes name the paths of
 * resources and not those of their metadata, which begin with another segment (RFC 9728 §3.1).
 */
function findMetadataRule(
  find: FindRule,
  host: string,
  path: string,
  { method, requestHeaders }: HttpExchange,
): Candidate<BoundRule> | undefined {
  const asked = parseMetadataPath(path, method !== "GET");
  const target = asked === undefined || asked.resource === "" ? "/" : asked.resource;
  // MCP clients call their server with POST; a rule for other methods only is no resource of theirs.
  const found = find(host, target, { method: "POST", target, requestHeaders });
  return found?.rule.servesMetadata() === true ? found : undefined;
}

/** A rule that names a well-known path serves it itself; one for every path below "/" does not. */
function isOwnRule(found: Candidate<BoundRule> | undefined): boolean {
  return found !== undefined && (found.match.path.kind === "regex" || found.match.path.text.startsWith("/.well-known"));
}
