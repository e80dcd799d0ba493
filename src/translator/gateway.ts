/**
 * Gateways that belong to this controller: their listeners as routes see them, and the Bind and Listener resources.
 * Follows the Gateway API; serves HTTP, says so of every other protocol.
 */
import { create } from "@bufbuild/protobuf";
import type { Gateway } from "../../generated/types/gateway-api/gateway.ts";
import { BindSchema, ListenerSchema, Protocol } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../api/conditions.ts";
import { objectId, type ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP } from "../api/refs.ts";
import { resourceOf } from "../ir/encode.ts";
import { bindKey, gatewayKey, listenerKey } from "../ir/keys.ts";
import type { Resource } from "../ir/resource.ts";
import type { LabelSelector } from "./labels.ts";
import { irRef } from "./refs.ts";

export interface Fault {
  readonly reason: Reason;
  readonly message: string;
}

export interface RouteKind {
  readonly group: string;
  readonly kind: string;
}

/** What routes and status need to know of one listener. */
export interface ListenerView {
  readonly name: string;
  readonly key: string;
  /** Key of its Bind. */
  readonly bind: string;
  readonly port: number;
  /** Empty: any host. */
  readonly hostname: string;
  readonly supportedKinds: readonly RouteKind[];
  readonly namespaces: { readonly from: string; readonly selector?: LabelSelector };
  /** Why it cannot serve; undefined when it does. */
  readonly fault: Fault | undefined;
  readonly kindFault: Fault | undefined;
}

export interface GatewayView {
  readonly id: ObjectId;
  /** "namespace/name" */
  readonly key: string;
  readonly generation: number;
  readonly listeners: readonly ListenerView[];
  readonly resources: readonly Resource[];
}

type Listener = NonNullable<Gateway["spec"]["listeners"]>[number];

const HTTP_ROUTE: RouteKind = { group: GATEWAY_GROUP, kind: "HTTPRoute" };

export function translateGateway(gateway: Gateway): GatewayView {
  const id = objectId(gateway);
  const key = gatewayKey(id.namespace, id.name);
  const taken = new Map<string, string>();
  const listeners = (gateway.spec.listeners ?? []).map((listener) => viewListener(listener, key, taken));
  return {
    id,
    key,
    generation: gateway.metadata.generation ?? 0,
    listeners,
    resources: resourcesOf(id, key, listeners),
  };
}

function viewListener(listener: Listener, gateway: string, taken: Map<string, string>): ListenerView {
  const hostname = (listener.hostname ?? "").toLowerCase();
  const { kinds, fault: kindFault } = supportedKinds(listener);
  const namespaces = listener.allowedRoutes?.namespaces;
  return {
    name: listener.name,
    key: listenerKey(gateway, listener.name),
    bind: bindKey(listener.port, gateway),
    port: listener.port,
    hostname,
    supportedKinds: kinds,
    namespaces: {
      from: namespaces?.from ?? "Same",
      ...(namespaces?.selector === undefined ? {} : { selector: namespaces.selector }),
    },
    fault: protocolFault(listener) ?? conflict(listener, hostname, taken),
    kindFault,
  };
}

function protocolFault({ protocol }: Listener): Fault | undefined {
  if (protocol === "HTTP") return undefined;
  return { reason: Reason.UnsupportedProtocol, message: `protocol ${protocol} is not served yet; HTTP is` };
}

/** The earlier listener keeps the port and host; only the later one loses. */
function conflict(listener: Listener, hostname: string, taken: Map<string, string>): Fault | undefined {
  const place = `${listener.port} ${hostname}`;
  const owner = taken.get(place);
  if (owner === undefined) {
    taken.set(place, listener.name);
    return undefined;
  }
  const host = hostname === "" ? "any hostname" : `hostname ${hostname}`;
  return {
    reason: Reason.HostnameConflict,
    message: `port ${listener.port} with ${host} belongs to listener ${owner}`,
  };
}

function supportedKinds(listener: Listener): { kinds: RouteKind[]; fault: Fault | undefined } {
  if (listener.protocol !== "HTTP") return { kinds: [], fault: undefined };
  const asked = listener.allowedRoutes?.kinds ?? [];
  if (asked.length === 0) return { kinds: [HTTP_ROUTE], fault: undefined };
  const refused = asked.filter((kind) => !isHttpRoute(kind)).map((kind) => kind.kind);
  const kinds = refused.length === asked.length ? [] : [HTTP_ROUTE];
  if (refused.length === 0) return { kinds, fault: undefined };
  return {
    kinds,
    fault: { reason: Reason.InvalidRouteKinds, message: `route kinds that are not served: ${refused.join(", ")}` },
  };
}

function isHttpRoute({ group, kind }: { readonly group?: string; readonly kind: string }): boolean {
  return (group ?? GATEWAY_GROUP) === GATEWAY_GROUP && kind === "HTTPRoute";
}

function resourcesOf(id: ObjectId, gateway: string, listeners: readonly ListenerView[]): Resource[] {
  const serving = listeners.filter((listener) => listener.fault === undefined);
  const ports = [...new Set(serving.map((listener) => listener.port))];
  const binds = ports.map((port) =>
    resourceOf(
      "Bind",
      create(BindSchema, { key: bindKey(port, gateway), gateway: irRef(id), port, protocol: Protocol.HTTP }),
    ),
  );
  const rest = serving.map(({ key, bind, name, hostname }) =>
    resourceOf(
      "Listener",
      create(ListenerSchema, {
        key,
        bind,
        gateway: irRef(id),
        name,
        hostname,
        protocol: Protocol.HTTP,
      }),
    ),
  );
  return [...binds, ...rest];
}
