/**
 * Builds the answer of /config_dump (docs/admin.md): the resources of a data plane by kind, in the words that users
 * write, with secrets masked. The admin server uses it. Maps are sorted by key.
 */
import type { Bind, Listener, ObjectRef, Policy } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Protocol } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Resource, ResourceType } from "../ir/resource.ts";
import { printInWords } from "../ir/words.ts";
import type { ProxyState } from "../proxy/proxy.ts";
import { compare } from "../lib/compare.ts";
import { VERSION } from "../lib/version.ts";
import type { SyncReport } from "./sync-report.ts";

type Of<T extends ResourceType> = Extract<Resource, { type: T }>;

/** What the process adds to the state of its data plane. */
export interface DumpedProcess {
  /** Effective settings. */
  readonly config: object;
  readonly sync: Pick<SyncReport, "dump">;
}

export function configDump(state: ProxyState, { config, sync }: DumpedProcess): object {
  const of = <T extends ResourceType>(type: T): Of<T>[] =>
    // The cast holds because the filter leaves exactly the members of that type.
    (state.resources.filter((resource) => resource.type === type) as Of<T>[]).sort((a, b) => compare(a.key, b.key));
  const backends = of("Backend");
  const endpoints = Map.groupBy(state.endpoints, ({ backend }) => backend);
  const setsOf = (key: string): object[] => endpointSets(endpoints.get(key) ?? []);
  return {
    binds: of("Bind").map((bind) => dumpBind(bind, state, of("Listener"), [...of("HttpRoute"), ...of("TcpRoute")])),
    routes: Object.fromEntries(
      [...of("HttpRoute"), ...of("TcpRoute")].map((route) => [route.key, printInWords(route)]),
    ),
    policies: of("Policy").map(dumpPolicy),
    backends: backends.map((backend) => dumpBackend(backend, setsOf(backend.key))),
    models: of("Model").map((model) => printInWords(model)),
    modelCatalogs: of("ModelCatalogSource").map(({ key, message }) => ({
      key,
      position: message.position,
      characters: message.text.length,
      invalidReason: message.invalidReason === "" ? null : message.invalidReason,
    })),
    services: backends.flatMap((backend) => dumpService(backend, of("Endpoints"), setsOf(backend.key))),
    // Only a mesh has workloads.
    workloads: [],
    workloadIdentity: state.workloadIdentity,
    credentials: state.credentials,
    version: { version: VERSION, revision: process.env["GWPROXY_REVISION"] ?? null, node: process.versions.node },
    config,
    sync: sync.dump(),
  };
}

const PROTOCOLS: Readonly<Record<Protocol, string>> = {
  [Protocol.UNSPECIFIED]: "auto",
  [Protocol.HTTP]: "http",
  [Protocol.HTTPS]: "https",
  [Protocol.TLS]: "tls",
  [Protocol.TCP]: "tcp",
};

function dumpBind(
  { key, message }: { readonly key: string; readonly message: Bind },
  state: ProxyState,
  listeners: readonly Of<"Listener">[],
  routes: readonly Of<"HttpRoute" | "TcpRoute">[],
): object {
  const open = state.listeners.find(({ bind }) => bind === key);
  const own = listeners.filter((listener) => listener.message.bind === key);
  return {
    key,
    address: open?.boundPort ?? null,
    protocol: PROTOCOLS[message.protocol],
    mode: message.internal ? "internal" : "standard",
    tunnelProtocol: "direct",
    listeners: Object.fromEntries(own.map((listener) => [listener.key, dumpListener(listener.message, routes)])),
  };
}

function dumpListener(message: Listener, routes: readonly Of<"HttpRoute" | "TcpRoute">[]): object {
  const { key, gateway, name, listenerSet, hostname, protocol, tls } = message;
  const keysOf = (type: "HttpRoute" | "TcpRoute"): string[] =>
    routes
      .filter((route) => route.type === type && route.message.parents.some(({ listener }) => listener === key))
      .map((route) => route.key);
  return {
    key,
    gatewayName: gateway?.name ?? "",
    gatewayNamespace: gateway?.namespace ?? "",
    listenerName: name,
    listenerSet: listenerSet === undefined ? null : `${listenerSet.namespace}/${listenerSet.name}`,
    hostname,
    protocol: PROTOCOLS[protocol],
    tls: tls === undefined ? null : { passthrough: tls.passthrough, hasCertificate: tls.certificatePem !== "" },
    routes: keysOf("HttpRoute"),
    tcpRoutes: keysOf("TcpRoute"),
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
  all: readonly Of<"Endpoints">[],
  endpoints: readonly object[],
): object[] {
  if (kind.case !== "service") return [];
  const { hostname, port, version, a2a } = kind.value;
  const [name = "", namespace = ""] = hostname.split(".");
  const known = all.find((each) => each.key === key)?.message;
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
