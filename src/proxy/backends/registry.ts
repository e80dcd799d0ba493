/**
 * The registry of the backends in force, one per proxy. Routes hold a `BackendHandle` for each backend and place, and
 * not the handler: a change of a backend replaces the handler inside its handles, so that no route is compiled again. A
 * change of endpoints replaces only the list inside an `EndpointSet`.
 *
 *     route rule ──▶ BackendHandle (backend key + policies of the place, counted users)
 *                       └─ handler ──▶ settings of the place + endpoints of the backend
 *
 * Handles with equal policies are shared. A backend that cannot be compiled gets a handler that refuses every request
 * (fail closed).
 */
import { create } from "@bufbuild/protobuf";
import {
  BackendSettingsSchema,
  type Backend,
  type BackendSettings,
  type Endpoints,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Scope } from "../../cel/scope.ts";
import { ConfigError } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { SharedTable } from "../../lib/shared-table.ts";
import { createA2aHandler } from "../a2a/handler.ts";
import type { Callouts } from "../callouts/callouts.ts";
import { ProxyError, type ProxyErrorCode } from "../exchange/errors.ts";
import type { Catalogs } from "../llm/cost/catalogs.ts";
import { createLlmHandler } from "../llm/handler.ts";
import { createMcpHandler } from "../mcp/handler.ts";
import type { Sessions } from "../mcp/session/sessions.ts";
import { ModelStore } from "../llm/models/store.ts";
import { createModelsHandler } from "../llm/models/handler.ts";
import type { BackendMeter } from "../../telemetry/metrics.ts";
import type { OutboundSubtype } from "../observability/tracing/outbound.ts";
import type { CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import { admitted, compileAdmission } from "./admission.ts";
import { AuthCompiler } from "./auth/index.ts";
import { placeOfAuth, printObject } from "./auth/place.ts";
import { beginCall, compileOwnDestination, OwnDestinations, type CompiledDestination } from "./own-call.ts";
import { backendsBehind, defaultsOf, isAgent, protocolOf, subtypeOf, type ProviderBehind } from "./backend-kind.ts";
import { backendName } from "./backend-name.ts";
import type { PickDeps } from "../balancing/pick.ts";
import { connectionOf, type UpstreamTarget } from "../upstream/dial/connection-settings.ts";
import { dumpOf, type EndpointDump } from "../balancing/endpoint-dump.ts";
import type { EndpointStats } from "../balancing/endpoint-stats.ts";
import { EndpointSet, type ProxyLocality } from "../balancing/endpoints.ts";
import { openBackendBehind } from "./backend-behind.ts";
import { Dependents } from "./dependents.ts";
import type { BackendBehind, BackendDeps, BackendHandler, ServiceEndpoint } from "./handler.ts";
import { createHttpHandler, type RequestedAuthority, type Destination } from "./http-handler.ts";
import { createAgentRuntimeHandler } from "./agent-runtime.ts";
import { createGuardServices } from "./guard-services.ts";
import { compileDestination } from "./compile-destination.ts";
import { checkSettings, mergeSettings, settingsOfLevel, withClientCertificate } from "./settings.ts";
import type { IdentitySource } from "../spiffe/workload-api.ts";
import { EndpointStatsStore } from "../balancing/endpoint-stats-store.ts";
import type { Tokens } from "../tokens/tokens.ts";
import { Tunnels } from "./tunnels.ts";
import type { CallTarget, Upstream } from "../upstream/upstream.ts";

/** One endpoint of a backend, for a connection of raw bytes. */
export interface ByteDestination {
  readonly target: UpstreamTarget;
  /** Name of the endpoint for logs. */
  readonly name: string;
  readonly record: Pick<EndpointStats, "begin" | "end" | "recordHealthy" | "recordUnhealthy">;
}

/** Properties of a raw connection that are known before an upstream is called. */
export interface ByteRequest extends RequestedAuthority {
  readonly client: Scope;
}

export interface BackendHandle {
  readonly id: string;
  readonly backendKey: string;
  /** The policies with backend settings of the Gateway, the listener, the route and the rule. */
  readonly outer: readonly (readonly CompiledPolicy[])[];
  info: { readonly name: string; readonly type: string; readonly protocol: string };
  handler: BackendHandler;
  users: number;
}

export interface RegistryOptions extends PickDeps {
  readonly log: Logger;
  readonly upstream: Upstream;
  readonly policies: PolicySet;
  readonly catalogs: Catalogs;
  readonly sessions: Sessions;
  readonly expression: BackendDeps["expression"];
  /** Shared memory for the statistics of endpoints, used by all threads of the replica. */
  readonly slots: SharedTable;
  readonly locality: ProxyLocality;
  readonly identities: IdentitySource;
  /** Random name of this data plane in CDN-Loop (RFC 8586). */
  readonly replica: string;
  /** Fetched credentials for backends. */
  readonly tokens: Tokens;
  /** See BackendDeps. */
  readonly traffic: BackendDeps["traffic"];
  /** Opens the services that prompt guards call, and token endpoints. */
  readonly callouts: () => Pick<Callouts, "open" | "openTarget">;
  /** Creates the meter of a backend; undefined when calls are not counted. @param name the backend's name in metrics */
  readonly meterOf?: ((name: string, subtype: OutboundSubtype) => BackendMeter) | undefined;
}

export class BackendRegistry {
  readonly #options: RegistryOptions;
  readonly #backends = new Map<string, Backend>();
  /** The caller rebuilds the Backends that a change of models concerns. */
  readonly models: ModelStore = new ModelStore((backend) => this.#deps(backend, []));
  readonly #endpoints = new Map<string, EndpointSet>();
  readonly #handles = new Map<string, BackendHandle>();
  readonly #handlesOf = new Map<string, Set<BackendHandle>>();
  /** Backends whose providers lead to another one, and are compiled with the settings of that. */
  readonly #dependents = new Dependents();
  readonly #auth: AuthCompiler;
  readonly #tunnels: Tunnels = new Tunnels((key) => this.pickCallTarget(key));
  readonly #destinations = new OwnDestinations();
  readonly #records: EndpointStatsStore;
  readonly #locality: ProxyLocality;

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#auth = new AuthCompiler({ environment: process.env, ...options });
    this.#records = new EndpointStatsStore(options.slots);
    this.#locality = { ...options.locality };
  }

  /**
   * Returns the handle for a backend in one place; `release` gives it back.
   * @param levels outer levels, least specific first
   */
  acquire(backendKey: string, levels: readonly (readonly CompiledPolicy[])[]): BackendHandle {
    const outer = withBackendSettings(levels);
    const id = `${backendKey}|${levelsId(outer)}`;
    let handle = this.#handles.get(id);
    if (handle === undefined) {
      handle = { id, backendKey, outer, ...this.#build(backendKey, outer), users: 0 };
      this.#handles.set(id, handle);
      this.#handlesOf.set(backendKey, (this.#handlesOf.get(backendKey) ?? new Set()).add(handle));
    }
    handle.users++;
    return handle;
  }

  release(handle: BackendHandle): void {
    handle.users--;
    if (handle.users > 0) return;
    this.#handles.delete(handle.id);
    this.#handlesOf.get(handle.backendKey)?.delete(handle);
    this.#forget(handle.backendKey);
  }

  /** @throws ConfigError when the backend cannot be served; the former version then stays in force */
  put(message: Backend): void {
    checkSettings(message.settings, this.#options.identities);
    if (message.kind.case === undefined) throw new ConfigError("backend of a kind unknown to this version");
    // Compile it without a place, to find errors before it replaces the former version.
    if (message.kind.case === "ai") createLlmHandler(message.kind.value, this.#deps(message, NO_LEVELS));
    const { kind } = this.#backends.get(message.key) ?? {};
    this.#backends.set(message.key, message);
    this.rebuild(message.key);
    // A backend of another kind must not reuse the connections of the former one.
    if (kind !== undefined && kind.case !== message.kind.case) this.#options.upstream.retire(message.key);
  }

  remove(key: string): void {
    this.#backends.delete(key);
    this.rebuild(key);
    this.#forget(key);
    this.#options.upstream.forget(key);
  }

  putEndpoints(key: string, message: Endpoints | undefined): void {
    const set = this.endpointsOf(key);
    set.update(message);
    this.#forget(key);
    if (this.#locality.zone !== "" || set.zone === "") return;
    this.#locality.zone = set.zone;
    for (const each of this.#endpoints.values()) each.regroup();
  }

  endpointsOf(key: string): EndpointSet {
    let set = this.#endpoints.get(key);
    if (set !== undefined) return set;
    set = new EndpointSet(this.#locality, this.#records.open.bind(this.#records, key));
    this.#endpoints.set(key, set);
    return set;
  }

  /** Returns the statistics of all endpoints for the admin interface. */
  dump(): EndpointDump[] {
    const now = this.#options.nowMs();
    const services = [...this.#endpoints].flatMap(([backend, set]) =>
      [...set.all].map(({ name, record }) => dumpOf(backend, name, record, now)),
    );
    const others = [...this.#records.entries()].map(({ backend, name, record }) => dumpOf(backend, name, record, now));
    return [...services, ...others];
  }

  /** Compiles a backend anew, and those whose providers lead to it. */
  rebuild(key: string): void {
    this.#dependents.put(
      key,
      this.behind(key).map(({ backend }) => backend),
    );
    for (const each of new Set([key, ...this.#dependents.of(key)])) {
      this.#destinations.delete(each);
      this.#records.renew(each, () => {
        for (const handle of this.#handlesOf.get(each) ?? []) Object.assign(handle, this.#build(each, handle.outer));
      });
    }
  }

  /**
   * Drops the state of a backend without configuration and users, since backends come and go while the process lives.
   */
  #forget(key: string): void {
    if (this.#backends.has(key) || (this.#handlesOf.get(key)?.size ?? 0) > 0) return;
    this.#handlesOf.delete(key);
    if (this.#endpoints.get(key)?.isEmpty === true) this.#endpoints.delete(key);
  }

  /** Returns the name and type of a backend for expressions and reports. */
  identityOf(key: string): { readonly name: string; readonly type: string } {
    const type = this.#backends.get(key)?.kind.case ?? "unknown";
    return { name: backendName(key), type: type === "models" ? "ai" : type };
  }

  /** Returns the providers of a backend that lead to another one. */
  behind(key: string): readonly ProviderBehind[] {
    const kind = this.#backends.get(key)?.kind;
    return kind?.case === "models" ? this.models.backendsBehind(key) : backendsBehind(kind);
  }

  #build(key: string, outer: BackendHandle["outer"]): Pick<BackendHandle, "info" | "handler"> {
    const message = this.#backends.get(key);
    const { name, type } = this.identityOf(key);
    const info = { name, type, protocol: protocolOf(type) };
    if (message === undefined) return { info, handler: failingHandler("backend_invalid", key) };
    try {
      return { info, handler: this.#handler(message, outer) };
    } catch (error) {
      this.#options.log.warn("backend closed", { backend: key, reason: String(error) });
      return { info, handler: failingHandler(error instanceof ProxyError ? error.code : "backend_invalid", key) };
    }
  }

  /** @throws ConfigError, ProxyError */
  #handler(message: Backend, outer: BackendHandle["outer"]): BackendHandler {
    const deps = this.#deps(message, outer);
    this.#refuseIfClosed(message.key, "");
    if (message.kind.case === "ai") return createLlmHandler(message.kind.value, deps);
    if (message.kind.case === "mcp")
      return admitted(compileAdmission(deps.settings("", undefined), deps), createMcpHandler(message.kind.value, deps));
    if (message.kind.case === "models")
      return createModelsHandler(message.kind.value, this.models.of(message.key), deps);
    const settings = deps.settings("", undefined, { defaults: defaultsOf(message) });
    const http = createHttpHandler(this.#compileDestination(message, settings, deps), settings, deps);
    if (message.kind.case === "agentRuntime") return createAgentRuntimeHandler(message.kind.value, http);
    return isAgent(message) ? createA2aHandler(http, deps) : http;
  }

  #compileDestination(message: Backend, settings: BackendSettings, deps: BackendDeps): Destination {
    const balanced = { ...deps, endpoints: () => this.endpointsOf(message.key), replica: this.#options.replica };
    return compileDestination(message, settings, balanced);
  }

  #deps(message: Backend, outer: BackendHandle["outer"]): BackendDeps {
    const { log, upstream, policies, expression, random, nowMs, identities, meterOf, catalogs, sessions, traffic } =
      this.#options;
    const { key } = message;
    const connection: BackendDeps["connection"] = ({ tls, tcp, tunnel }) => {
      // Start the identity watch here as well: providers of a group and guards have settings that `put` does not check.
      if (tls?.spiffe === true) identities.current();
      return connectionOf({ tls, tcp, proxy: this.#tunnels.of(tunnel) });
    };
    return {
      meter: meterOf?.(backendName(key), subtypeOf(this.identityOf(key).type)),
      owner: key,
      place: `${key}|${levelsId(outer)}`,
      catalogs,
      sessions,
      expression,
      random,
      nowMs,
      record: (name) => this.#records.of(key, name),
      log,
      upstream,
      traffic,
      settings: (section, inline, { defaults, behind } = {}) => {
        this.#refuseIfClosed(key, section);
        const levels = [
          ...outer,
          policies.at(`backend:${key}`),
          section === "" ? [] : policies.at(`backend:${key}#${section}`),
        ];
        const merged = mergeSettings([defaults, ...levels.map(settingsOfLevel), message.settings, inline, behind]);
        this.#auth.locate(merged.auth, placeOfAuth(merged.auth, levels.flat(), message, section));
        return withClientCertificate(merged);
      },
      connection,
      behind: (other) => this.#backendBehind(other),
      serviceEndpoint: (other, pinned) => this.#serviceEndpoint(other, pinned),
      auth: (block) => this.#auth.compile(block),
      ...createGuardServices(this.#options.callouts, {
        owner: key,
        connection,
        auth: (block) => {
          this.#auth.locate(block, `${printObject(message)} promptGuard`);
          return this.#auth.compile(block);
        },
      }),
    };
  }

  #refuseIfClosed(key: string, section: string): void {
    const target = section === "" ? `backend:${key}` : `backend:${key}#${section}`;
    const closed = this.#options.policies.at(target).find(({ failsClosed }) => failsClosed);
    if (closed !== undefined) throw new ProxyError("policy_refused", { detail: closed.key });
  }

  /**
   * Picks an endpoint of a plain backend for one call.
   * @throws ProxyError backend_invalid, endpoint_unavailable, policy_refused
   */
  pickCallTarget(key: string): CallTarget {
    const { destination, authority, auth, http } = this.#callDestination(key);
    const endpoint = destination.pick();
    return { target: destination.target(endpoint), authority, auth, http, begin: () => beginCall(endpoint) };
  }

  #backendBehind(key: string): BackendBehind {
    const attached = this.#options.policies.at(`backend:${key}`);
    return openBackendBehind({ key, message: this.#backends.get(key), attached }, (message, own) => {
      // The place of the credential is that of its policy, whichever provider uses it.
      this.#auth.locate(own.auth, placeOfAuth(own.auth, attached, message, ""));
      const deps = this.#deps(message, NO_LEVELS);
      return { ...deps, compile: (settings) => this.#compileDestination(message, settings, deps) };
    });
  }

  #serviceEndpoint(key: string, pinned: string | undefined): ServiceEndpoint | undefined {
    const { destination, authority, auth, http } = this.#callDestination(key);
    const endpoint = pinned === undefined ? destination.pick() : destination.find?.(pinned);
    if (endpoint === undefined) return undefined;
    const { name, record } = endpoint;
    return { target: destination.target(endpoint), record, name, authority, auth, http };
  }

  /** Does the same for a connection of raw bytes. @param levels as for `acquire` @throws ProxyError also request_invalid */
  byteDestination(
    key: string,
    { client, ...asked }: ByteRequest,
    levels: readonly (readonly CompiledPolicy[])[],
  ): ByteDestination {
    const { destination, session, refusesBytes } = this.#destinationOf(key, withBackendSettings(levels));
    if (refusesBytes) throw new ProxyError("policy_refused", { detail: "authorization of a backend needs requests" });
    const affinity = session?.ofConnection(client);
    const endpoint = destination.pick(affinity === undefined ? undefined : { affinity, tried: undefined }, asked);
    return { target: destination.target(endpoint), name: endpoint.name, record: endpoint.record };
  }

  #callDestination(key: string): CompiledDestination {
    const found = this.#destinationOf(key);
    if (found.refusesCalls) throw new ProxyError("policy_refused", { detail: `${key} has extAuth, for requests only` });
    return found;
  }

  #destinationOf(key: string, outer: BackendHandle["outer"] = NO_LEVELS): CompiledDestination {
    return this.#destinations.get(key, levelsId(outer), () => {
      const message = this.#backends.get(key);
      if (message === undefined) throw new ProxyError("backend_invalid", { detail: `${key} does not exist` });
      this.#refuseIfClosed(key, "");
      const deps = this.#deps(message, outer);
      const settings =
        message.kind.case === "ai"
          ? create(BackendSettingsSchema)
          : deps.settings("", undefined, { defaults: defaultsOf(message) });
      return compileOwnDestination(message, this.#compileDestination(message, settings, deps), settings, deps);
    });
  }
}

const NO_LEVELS: BackendHandle["outer"] = [];

function withBackendSettings(levels: readonly (readonly CompiledPolicy[])[]): BackendHandle["outer"] {
  return levels.map((level) => level.filter(({ backend }) => backend !== undefined));
}

function levelsId(outer: BackendHandle["outer"]): string {
  return outer.map((level) => level.map(({ id }) => id).join(" ")).join("|");
}

function failingHandler(code: ProxyErrorCode, detail: string): BackendHandler {
  return () => {
    throw new ProxyError(code, { detail });
  };
}
