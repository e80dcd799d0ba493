/**
 * Which listeners a route attaches to: parentRefs, sections and ports, allowed kinds and namespaces, hostnames.
 * One result per parent object; several references to one Gateway are added up.
 */
import { Reason } from "../api/conditions.ts";
import type { KubeObject } from "../api/object.ts";
import { GATEWAY_GROUP, nameKey } from "../api/refs.ts";
import type { Readable } from "../lib/collections/collection.ts";
import type { Read } from "../lib/collections/graph.ts";
import type { Fault, GatewayView, ListenerView } from "./gateway.ts";
import { intersectHostnames } from "./hostname.ts";
import { matchesSelector } from "./labels.ts";

export interface ParentView {
  /** "namespace/name" of the Gateway. */
  readonly gateway: string;
  /** As it is written into the status: without section and port. */
  readonly ref: { readonly group: string; readonly kind: string; readonly namespace: string; readonly name: string };
  readonly listeners: readonly AttachedListener[];
  /** Why nothing was attached; undefined when something was. */
  readonly fault: Fault | undefined;
}

export interface AttachedListener {
  readonly key: string;
  readonly name: string;
  /** Empty: every host of the listener. */
  readonly hostnames: readonly string[];
}

export interface AttachContext {
  readonly gateways: Readable<GatewayView>;
  /** Every Gateway that exists, ours or not. */
  readonly allGateways: Readable<KubeObject>;
  readonly namespaces: Readable<KubeObject>;
}

interface ParentRef {
  readonly group?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name: string;
  readonly sectionName?: string;
  readonly port?: number;
}

/** What every kind of route has. */
export interface AttachableRoute extends Pick<KubeObject, "metadata"> {
  readonly spec: {
    readonly parentRefs?: readonly ParentRef[];
    readonly hostnames?: readonly string[];
    readonly rules?: readonly { readonly name?: string }[];
  };
}

/** Parents of other controllers and of other kinds are left out: their status is not ours to write. */
export function attachRoute(route: AttachableRoute, kind: string, context: AttachContext, read: Read): ParentView[] {
  const namespace = route.metadata.namespace ?? "";
  const parents = new Map<string, ParentView>();
  for (const ref of route.spec.parentRefs ?? []) {
    if ((ref.group ?? GATEWAY_GROUP) !== GATEWAY_GROUP || (ref.kind ?? "Gateway") !== "Gateway") continue;
    const parent = { group: GATEWAY_GROUP, kind: "Gateway", namespace: ref.namespace ?? namespace, name: ref.name };
    const key = nameKey(parent);
    const gateway = read.get(context.gateways, key);
    if (gateway === undefined && read.get(context.allGateways, key) !== undefined) continue;
    const found = gateway === undefined ? missing(key) : attachTo(gateway, ref, route, { kind, context, read });
    parents.set(key, merged(parents.get(key), { gateway: key, ref: parent, ...found }));
  }
  return [...parents.values()];
}

type Found = Pick<ParentView, "listeners" | "fault">;

function missing(gateway: string): Found {
  return refuse(Reason.NoMatchingParent, `Gateway ${gateway} not found`);
}

function refuse(reason: Reason, message: string): Found {
  return { listeners: [], fault: { reason, message } };
}

function attachTo(
  gateway: GatewayView,
  ref: ParentRef,
  route: AttachableRoute,
  { kind, context, read }: { kind: string; context: AttachContext; read: Read },
): Found {
  const named = gateway.listeners.filter(
    (listener) =>
      (ref.sectionName === undefined || listener.name === ref.sectionName) &&
      (ref.port === undefined || listener.port === ref.port),
  );
  if (named.length === 0)
    return refuse(Reason.NoMatchingParent, `Gateway ${gateway.key} has no ${describeSection(ref)}`);
  const serving = named.filter((listener) => listener.fault === undefined);
  if (serving.length === 0)
    return refuse(
      Reason.NoMatchingParent,
      named.map((listener) => `listener ${listener.name} cannot serve: ${listener.fault?.message}`).join("; "),
    );
  const namespace = route.metadata.namespace ?? "";
  const allowed = serving.filter(
    (listener) =>
      listener.supportedKinds.some((supported) => supported.kind === kind) &&
      allowsNamespace(listener, gateway.id.namespace, namespace, { context, read }),
  );
  if (allowed.length === 0)
    return refuse(
      Reason.NotAllowedByListeners,
      `no listener of Gateway ${gateway.key} allows a route of kind ${kind} from namespace ${namespace}`,
    );
  const listeners = allowed.flatMap(({ key, name, hostname }): AttachedListener[] => {
    const hostnames = intersectHostnames(hostname, route.spec.hostnames ?? []);
    return hostnames === undefined ? [] : [{ key, name, hostnames }];
  });
  if (listeners.length > 0) return { listeners, fault: undefined };
  return refuse(
    Reason.NoMatchingListenerHostname,
    `no listener of Gateway ${gateway.key} serves a hostname of the route`,
  );
}

function allowsNamespace(
  { namespaces }: ListenerView,
  own: string,
  namespace: string,
  { context, read }: { context: AttachContext; read: Read },
): boolean {
  if (namespaces.from === "All") return true;
  if (namespaces.from === "Same") return namespace === own;
  if (namespaces.from !== "Selector") return false;
  const labels = read.get(context.namespaces, namespace)?.metadata.labels ?? {};
  // Kubernetes itself puts this label on every namespace; files usually hold no Namespace objects.
  return matchesSelector(namespaces.selector, { "kubernetes.io/metadata.name": namespace, ...labels });
}

function describeSection({ sectionName, port }: ParentRef): string {
  if (sectionName === undefined) return port === undefined ? "listener" : `listener on port ${port}`;
  return port === undefined ? `listener ${sectionName}` : `listener ${sectionName} on port ${port}`;
}

function merged(first: ParentView | undefined, second: ParentView): ParentView {
  if (first === undefined) return second;
  const listeners = new Map([...first.listeners, ...second.listeners].map((listener) => [listener.key, listener]));
  return {
    ...first,
    listeners: [...listeners.values()],
    fault: listeners.size > 0 ? undefined : first.fault,
  };
}
