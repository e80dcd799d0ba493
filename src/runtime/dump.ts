/**
 * Builds the answer of /config_dump (docs/admin.md): the resources of a data plane by kind, in the words that users
 * write, with secrets masked. The admin servers of data planes and controllers use it. Maps are sorted by key.
 */
import type { Bind, Endpoints, Listener, ObjectRef, Policy } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Protocol } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Resource, ResourceType } from "../ir/resource.ts";
import { printInWords } from "../ir/words.ts";
import type { ProxyState } from "../proxy/proxy.ts";
import { compare } from "../lib/compare.ts";
import { VERSION } from "../lib/version.ts";
import type { AppliedUpdates } from "./applied-updates.ts";

type Of<T extends ResourceType> = Extract<Resource, { type: T }>;

/** What the process adds to the state of its data plane. */
export interface DumpedProcess {
  /** Effective settings. */
  readonly config: object;
  readonly applied: Pick<AppliedUpdates, "sync">;
}

export function configDump(state: ProxyState, { config, applied }: DumpedProcess): object {
  return {
    ...dumpResources(state),
    // Only a mesh has workloads.
    workloads: [],
    workloadIdentity: state.workloadIdentity,
    credentials: state.credentials,
    version: dumpVersion(),
    config,
    sync: applied.sync(),
  };
}

export function dumpVersion(): object {
  return { version: VERSION, revision: process.env["GWPROXY_REVISION"] ?? null, node: process.versions.node };
}

/** Returns the resources of one data plane by kind; a controller has no listeners and endpoints in use to show. */
export function dumpResources(state: Pick<ProxyState, "resources" | "listeners" | "endpoints">): object {
  const of = <T extends ResourceType>(type: T): Of<T>[] =>
    // The cast holds because the filter leaves exactly the members of that type.
    (state.resources.filter((resource) => resource.type === type) as Of<T>[]).sort((a, b) => compare(a.key, b.key));
  const backends = of("Backend");
  const endpoints = Map.groupBy(state.endpoints, ({ backend }) => backend);
  const setsOf = (key: string): object[] => endpointSets(endpoints.get(key) ?? []);
  const known = new Map(of("Endpoints").map(({ key, message }) => [key, message]));
  const listeners = Map.groupBy(of("Listener"), ({ message }) => message.bind);
  const routes = { http: of("HttpRoute"), tcp: of("TcpRoute") };
  const keys = { http: keysByListener(routes.http), tcp: keysByListener(routes.tcp) };
  return {
    binds: of("Bind").map((bind) => dumpBind(bind, state, listeners.get(bind.key) ?? [], keys)),
    routes: Object.fromEntries([...routes.http, ...routes.tcp].map((route) => [route.key, printInWords(route)])),
    policies: of("Policy").map(dumpPolicy),
    backends: backends.map((backend) => dumpBackend(backend, setsOf(backend.key))),
    models: of("Model").map((model) => printInWords(model)),
    modelCatalogs: of("ModelCatalogSource").map(({ key, message }) => ({
      key,
      position: message.position,
      characters: message.text.length,
      invalidReason: message.invalidReason === "" ? null : message.invalidReason,
    })),
    services: backends.flatMap((backend) => dumpService(backend, known.get(backend.key), setsOf(backend.key))),
  };
}

const PROTOCOLS: Readonly<Record<Protocol, string>> = {
  [Protocol.UNSPECIFIED]: "auto",
  [Protocol.HTTP]: "http",
  [Protocol.HTTPS]: "https",
  [Protocol.TLS]: "tls",
  [Protocol.TCP]: "tcp",
};

/** Keys of routes by the key of a listener that they are attached to. */
interface RouteKeys {
  readonly http: ReadonlyMap<string, readonly string[]>;
  readonly tcp: ReadonlyMap<string, readonly string[]>;
}

/** A listener set may bring thousands of listeners and routes, so that each listener cannot look through all routes. */
function keysByListener(routes: readonly Of<"HttpRoute" | "TcpRoute">[]): ReadonlyMap<string, readonly string[]> {
  const keys = new Map<string, string[]>();
  for (const { key, message } of routes)
    for (const listener of new Set(message.parents.map((parent) => parent.listener))) {
      const own = keys.get(listener);
      if (own === undefined) keys.set(listener, [key]);
      else own.push(key);
    }
  return keys;
}

function dumpBind(
  { key, message }: { readonly key: string; readonly message: Bind },
  state: Pick<ProxyState, "listeners">,
  listeners: readonly Of<"Listener">[],
  routes: RouteKeys,
): object {
  const open = state.listeners.find(({ bind }) => bind === key);
  return {
    key,
    address: open?.boundPort ?? null,
    protocol: PROTOCOLS[message.protocol],
    mode: message.internal ? "internal" : "standard",
    tunnelProtocol: "direct",
    listeners: Object.fromEntries(listeners.map((listener) => [listener.key, dumpListener(listener.message, routes)])),
  };
}

function dumpListener(message: Listener, routes: RouteKeys): object {
  const { key, gateway, name, listenerSet, hostname, protocol, tls } = message;
  return {
    key,
    gatewayName: gateway?.name ?? "",
    gatewayNamespace: gateway?.namespace ?? "",
    listenerName: name,
    listenerSet: listenerSet === undefined ? null : `${listenerSet.namespace}/${listenerSet.name}`,
    hostname,
    protocol: PROTOCOLS[protocol],
    tls: tls === undefined ? null : { passthrough: tls.passthrough, hasCertificate: tls.certificatePem !== "" },
    routes: routes.http.get(key) ?? [],
    tcpRoutes: routes.tcp.get(key) ?? [],
  };
}

function dumpPolicy(resource: Of<"Policy">): object {
  const { key, object: _object, targets, override: _override, createdAtMs, ...policy } = printInWords(resource);
  return {
    key,
    name: nameOf(resource.message),
    target: targets ?? [],
    inheritance: resource.message.override ? "Override" : "Default",
    createdAt: createdAtMs ?? null,
    policy,
  };
}

function dumpBackend(resource: Of<"Backend">, endpoints: readonly object[]): object {
  const { key, object: _object, settings, ...backend } = printInWords(resource);
  return { key, name: nameOf(resource.message), backend, inlinePolicies: settings ?? null, endpoints };
}

/** A Service is a backend of its own, for each of its ports. */
function dumpService(
  { key, message: { kind, object } }: Of<"Backend">,
  known: Endpoints | undefined,
  endpoints: readonly object[],
): object[] {
  if (kind.case !== "service") return [];
  const { hostname, port, version, a2a } = kind.value;
  const [name = "", namespace = ""] = hostname.split(".");
  return [
    {
      key,
      name: object?.name ?? name,
      namespace: object?.namespace ?? namespace,
      hostname,
      vips: [],
      ports: { [port]: known?.endpoints.length ?? 0 },
      appProtocols: { [port]: a2a ? "a2a" : (["auto", "http1", "http2"][version] ?? "auto") },
      loadBalancer: known === undefined || known.preferences.length === 0 ? "any" : known.strict ? "strict" : "prefer",
      endpoints,
    },
  ];
}

/** Splits endpoints into those in rotation and those that are ejected. */
function endpointSets(dumps: ProxyState["endpoints"]): object[] {
  if (dumps.length === 0) return [];
  const setOf = (rejected: boolean): object =>
    Object.fromEntries(
      dumps
        .filter(({ evictedUntil }) => (evictedUntil !== null) === rejected)
        .sort((a, b) => compare(a.endpoint, b.endpoint))
        .map(({ backend: _backend, endpoint, ...info }) => [endpoint, { endpoint: { name: endpoint }, info }]),
    );
  return [{ active: setOf(false), rejected: setOf(true) }];
}

function nameOf({ object }: Pick<Policy, "object">): Pick<ObjectRef, "kind" | "namespace" | "name"> {
  const { kind = "", namespace = "", name = "" } = object ?? {};
  return { kind, namespace, name };
}
