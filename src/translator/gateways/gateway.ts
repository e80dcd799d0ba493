/**
 * Translates the Gateways of this controller: the view of each listener for routes and status, and the Bind and
 * Listener resources for data planes. `../graph.ts` uses it.
 *
 * Listeners are translated in order of precedence: those of the Gateway first, then those of its ListenerSets
 * (GEP-1713). An earlier listener keeps a contested port and hostname; the later one is in conflict and does not serve.
 * A protocol that is not supported is reported as such.
 */
import { create } from "@bufbuild/protobuf";
import type { Gateway } from "../../../generated/types/gateway-api/gateway.ts";
import {
  BindSchema,
  ListenerSchema,
  Protocol,
  type ListenerTls,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../api/conditions.ts";
import { objectId, type ObjectId } from "../../api/object.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP, nameKey } from "../../api/refs.ts";
import { resourceOf } from "../../ir/encode.ts";
import { bindKey, gatewayKey, listenerKey, setListenerKey } from "../../ir/keys.ts";
import type { Resource } from "../../ir/resource.ts";
import { admitsUnverifiedClients, translateGatewayClient } from "./gateway-client.ts";
import type { ReferencingListenerSet } from "./listener-set.ts";
import { translateListenerTls, type TlsContext, type TlsOwner } from "./listener-tls.ts";
import { irRef } from "../references/refs.ts";
import type { ConditionError, GatewayView, ListenerView, RouteGroupKind } from "../shared/views.ts";

interface TranslatedListener {
  readonly view: ListenerView;
  readonly tls: ListenerTls | undefined;
  /** The ListenerSet that it comes from; undefined for a listener of the Gateway itself. */
  readonly set: ObjectId | undefined;
}

type Listener = NonNullable<Gateway["spec"]["listeners"]>[number];

const HTTP_ROUTE: RouteGroupKind = { group: GATEWAY_GROUP, kind: "HTTPRoute" };
const GRPC_ROUTE: RouteGroupKind = { group: GATEWAY_GROUP, kind: "GRPCRoute" };
const TCP_ROUTE: RouteGroupKind = { group: GATEWAY_GROUP, kind: "TCPRoute" };
/** Models attach only to listeners that ask for them. */
const GW_MODEL: RouteGroupKind = { group: GWPROXY_GROUP, kind: "GwModel" };
const TLS_ROUTE: RouteGroupKind = { group: GATEWAY_GROUP, kind: "TLSRoute" };

/** The supported protocols and the route kinds that each accepts. */
const PROTOCOLS: Readonly<Record<string, { readonly wire: Protocol; readonly kinds: readonly RouteGroupKind[] }>> = {
  HTTP: { wire: Protocol.HTTP, kinds: [HTTP_ROUTE, GRPC_ROUTE] },
  HTTPS: { wire: Protocol.HTTPS, kinds: [HTTP_ROUTE, GRPC_ROUTE] },
  TLS: { wire: Protocol.TLS, kinds: [TLS_ROUTE, TCP_ROUTE] },
  TCP: { wire: Protocol.TCP, kinds: [TCP_ROUTE] },
};

interface Owner extends TlsOwner {
  readonly keyOf: (section: string) => string;
  /** Listener ports that get no socket. */
  readonly internal: ReadonlySet<number>;
}

/** The listener that holds a port, or a hostname on a port. */
interface PortUse {
  readonly name: string;
  readonly protocol: string;
  readonly internal: boolean;
}

/** @param sets the ListenerSets that name the Gateway, in order of precedence */
export function translateGateway(
  gateway: Gateway,
  sets: readonly ReferencingListenerSet[],
  context: TlsContext,
): GatewayView {
  const id = objectId(gateway);
  const key = gatewayKey(id.namespace, id.name);
  const portUses = new Map<string, PortUse>();
  const translate = (listeners: readonly Listener[], owner: Owner): TranslatedListener[] =>
    listeners.map((listener) => translateListener(listener, owner, portUses, context));
  const { ports: internal, error } = internalPorts(gateway);
  const keyOf = (name: string): string => listenerKey(key, name);
  const { annotations } = gateway.metadata;
  const own = translate(gateway.spec.listeners ?? [], { gateway, id, annotations, keyOf, internal });
  const joined = sets.map(({ set, allowed }) => {
    const setId = objectId(set);
    const keyOfSet = (name: string): string => setListenerKey(key, nameKey(setId), name);
    const owner = { gateway, id: setId, annotations: set.metadata.annotations, keyOf: keyOfSet };
    const listeners = translate(allowed ? set.spec.listeners : [], { ...owner, internal: new Set() });
    return { id: setId, generation: set.metadata.generation ?? 0, gateway: key, allowed, listeners };
  });
  const client = translateGatewayClient(gateway, context);
  return {
    id,
    key,
    generation: gateway.metadata.generation ?? 0,
    client: client && { error: client.error },
    admitsUnverifiedClients: admitsUnverifiedClients(gateway),
    error,
    listeners: viewsOf(own),
    sets: joined.map(({ listeners, ...set }) => ({ ...set, listeners: viewsOf(listeners) })),
    resources: [
      ...resourcesOf(id, key, [...own, ...joined.flatMap(({ listeners }) => listeners)]),
      ...(client?.resources ?? []),
    ],
  };
}

function viewsOf(listeners: readonly TranslatedListener[]): ListenerView[] {
  return listeners.map(({ view }) => view);
}

function translateListener(
  listener: Listener,
  owner: Owner,
  portUses: Map<string, PortUse>,
  context: TlsContext,
): TranslatedListener {
  const speaksTls = listener.protocol === "HTTPS" || listener.protocol === "TLS";
  const tls = speaksTls ? translateListenerTls(owner, listener, context) : undefined;
  const view = { ...viewListener(listener, owner, portUses), tlsError: tls?.error, trustError: tls?.trustError };
  return { view, tls: tls?.message, set: owner.id.kind === "ListenerSet" ? owner.id : undefined };
}

function viewListener(
  listener: Listener,
  { gateway, keyOf, internal }: Owner,
  portUses: Map<string, PortUse>,
): Omit<ListenerView, "tlsError" | "trustError"> {
  const hostname = (listener.hostname ?? "").toLowerCase();
  const place = { name: listener.name, protocol: listener.protocol, internal: internal.has(listener.port) };
  const { kinds, error: kindError } = supportedKinds(listener);
  const namespaces = listener.allowedRoutes?.namespaces;
  return {
    name: listener.name,
    key: keyOf(listener.name),
    bind: bindKey(listener.port, nameKey(objectId(gateway))),
    port: listener.port,
    internal: place.internal,
    protocol: listener.protocol,
    hostname,
    supportedKinds: kinds,
    namespaces: {
      from: namespaces?.from ?? "Same",
      ...(namespaces?.selector === undefined ? {} : { selector: namespaces.selector }),
    },
    error: protocolError(listener) ?? conflict(place, listener.port, hostname, portUses),
    kindError,
  };
}

function protocolError({ protocol }: Listener): ConditionError | undefined {
  if (Object.hasOwn(PROTOCOLS, protocol)) return undefined;
  const served = Object.keys(PROTOCOLS).join(", ");
  return { reason: Reason.UnsupportedProtocol, message: `protocol ${protocol} is not served; these are: ${served}` };
}

/**
 * Checks for a conflict with earlier listeners. The earlier listener keeps the port and hostname; only the later one
 * fails.
 */
function conflict(
  one: PortUse,
  port: number,
  hostname: string,
  portUses: Map<string, PortUse>,
): ConditionError | undefined {
  const first = portUses.get(String(port)) ?? one;
  if (first.protocol !== one.protocol) {
    const message = `port ${port} speaks ${first.protocol} for listener ${first.name}`;
    return { reason: Reason.ProtocolConflict, message };
  }
  if (first.internal !== one.internal) {
    const message = `port ${port} is ${first.internal ? "internal" : "public"} for listener ${first.name}`;
    return { reason: Reason.BindModeConflict, message };
  }
  const place = `${port} ${hostname}`;
  const owner = portUses.get(place);
  if (owner === undefined) {
    portUses.set(String(port), first);
    portUses.set(place, one);
    return undefined;
  }
  const host = hostname === "" ? "any hostname" : `hostname ${hostname}`;
  return { reason: Reason.HostnameConflict, message: `port ${port} with ${host} belongs to listener ${owner.name}` };
}

function supportedKinds(listener: Listener): { kinds: RouteGroupKind[]; error: ConditionError | undefined } {
  const asked = listener.allowedRoutes?.kinds ?? [];
  const usual = servedKinds(listener);
  if (asked.length === 0 || usual.length === 0) return { kinds: [...usual], error: undefined };
  const served = usual.includes(HTTP_ROUTE) ? [...usual, GW_MODEL] : usual;
  const kinds = served.filter((kind) => asked.some((one) => isSame(one, kind)));
  const refused = asked.filter((one) => !served.some((kind) => isSame(one, kind))).map(({ kind }) => kind);
  if (refused.length === 0) return { kinds, error: undefined };
  return {
    kinds,
    error: { reason: Reason.InvalidRouteKinds, message: `route kinds that are not served: ${refused.join(", ")}` },
  };
}

/**
 * Returns the route kinds that a listener supports. With TLS passthrough only the server name is left to route by,
 * which a TCPRoute cannot match.
 */
function servedKinds({ protocol, tls }: Listener): readonly RouteGroupKind[] {
  const kinds = PROTOCOLS[protocol]?.kinds ?? [];
  return tls?.mode === "Passthrough" ? kinds.filter((kind) => kind !== TCP_ROUTE) : kinds;
}

function isSame(asked: { readonly group?: string; readonly kind: string }, { group, kind }: RouteGroupKind): boolean {
  return (asked.group ?? GATEWAY_GROUP) === group && asked.kind === kind;
}

function resourcesOf(id: ObjectId, gateway: string, listeners: readonly TranslatedListener[]): Resource[] {
  const serving = listeners.filter(({ view }) => view.error === undefined);
  // All serving listeners of a port have one protocol, since others are in conflict; any of them can describe the Bind.
  const ports = new Map(serving.map(({ view }) => [view.port, view]));
  const binds = [...ports].map(([port, { protocol, internal }]) => {
    const key = bindKey(port, gateway);
    return resourceOf(
      "Bind",
      create(BindSchema, { key, gateway: irRef(id), port, protocol: irProtocol(protocol), internal }),
    );
  });
  const rest = serving.map(({ view: { key, bind, name, hostname, protocol }, tls, set }) =>
    resourceOf(
      "Listener",
      create(ListenerSchema, {
        key,
        bind,
        gateway: irRef(id),
        name,
        hostname,
        protocol: irProtocol(protocol),
        ...(tls === undefined ? {} : { tls }),
        ...(set === undefined ? {} : { listenerSet: irRef(set) }),
      }),
    ),
  );
  return [...binds, ...rest];
}

function irProtocol(protocol: string): Protocol {
  return PROTOCOLS[protocol]?.wire ?? Protocol.UNSPECIFIED;
}

interface InternalPorts {
  readonly ports: ReadonlySet<number>;
  readonly error: ConditionError | undefined;
}

const ANNOTATION = "gwproxy.dev/internal-ports";

/**
 * Reads the annotation `gwproxy.dev/internal-ports` of a Gateway: listener ports that get no socket and no Service port,
 * and are reached only through a tunnel. One invalid entry makes the Gateway invalid as a whole; the valid entries still
 * count, so that a typing error never opens a port that was closed.
 */
function internalPorts({ metadata, spec }: Gateway): InternalPorts {
  const text = metadata.annotations?.[ANNOTATION];
  if (text === undefined) return { ports: new Set(), error: undefined };
  const entries = text.split(",").map((entry) => entry.trim());
  const own = new Set(spec.listeners.map(({ port }) => port));
  const isPort = (entry: string): boolean => /^[1-9]\d{0,4}$/.test(entry) && own.has(Number(entry));
  const bad = entries.find((entry) => !isPort(entry));
  return {
    ports: new Set(entries.filter(isPort).map(Number)),
    error:
      bad === undefined
        ? undefined
        : {
            reason: Reason.Invalid,
            message: `annotation ${ANNOTATION}: "${bad}" is no port of a listener of the Gateway`,
          },
  };
}
