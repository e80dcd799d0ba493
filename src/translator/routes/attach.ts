/**
 * Attaches routes to listeners: it resolves parentRefs with section and port, and checks allowed kinds, allowed
 * namespaces (Gateway API `allowedRoutes`) and hostnames. `hostname-conflicts.ts` uses it for every kind of route.
 *
 * Each parent object gets one result; several references to one Gateway are merged.
 */
import { Reason } from "../../api/conditions.ts";
import type { KubeObject } from "../../api/object.ts";
import { describeRef, GATEWAY_GROUP, nameKey } from "../../api/refs.ts";
import type { Readable } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { AttachedListener, ListenerSetView, ParentView, GatewayView, ListenerView } from "../shared/views.ts";
import { intersectHostnames } from "./hostname.ts";
import { allowsNamespace } from "../gateways/allowed-namespaces.ts";

export interface AttachContext {
  readonly gateways: Readable<GatewayView>;
  /** Every Gateway that exists, whichever controller owns it. */
  readonly allGateways: Readable<KubeObject>;
  readonly listenerSets: Readable<ListenerSetView>;
  /** Every ListenerSet that exists, whichever controller owns its Gateway. */
  readonly allListenerSets: Readable<KubeObject>;
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

/** The part that every kind of route has. */
export interface AttachableRoute extends Pick<KubeObject, "metadata"> {
  readonly spec: {
    readonly parentRefs?: readonly ParentRef[];
    readonly hostnames?: readonly string[];
    readonly rules?: readonly { readonly name?: string }[];
  };
}

/**
 * Returns the parents of a route. Parents of other controllers and of other kinds are left out: their status belongs to
 * those controllers.
 */
export function attachRoute(route: AttachableRoute, kind: string, context: AttachContext, read: Read): ParentView[] {
  const namespace = route.metadata.namespace ?? "";
  const parents = new Map<string, ParentView>();
  for (const [at, ref] of (route.spec.parentRefs ?? []).entries()) {
    const parentKind = ref.kind ?? "Gateway";
    if ((ref.group ?? GATEWAY_GROUP) !== GATEWAY_GROUP || !isParentKind(parentKind)) continue;
    const parent = { group: GATEWAY_GROUP, kind: parentKind, namespace: ref.namespace ?? namespace, name: ref.name };
    const owner = findParent(parent, context, read);
    if (owner === "foreign") continue;
    const found = owner === undefined ? missing(parent) : attachTo(owner, ref, route, { kind, context, read });
    const key = `${parentKind} ${nameKey(parent)}`;
    parents.set(
      key,
      merged(parents.get(key), { gateways: [owner?.gateway ?? nameKey(parent)], ref: parent, at, ...found }),
    );
  }
  return [...parents.values()];
}

type Found = Pick<ParentView, "listeners" | "error">;

function isParentKind(kind: string): kind is "Gateway" | "ListenerSet" {
  return kind === "Gateway" || kind === "ListenerSet";
}

/** The parent that has the listeners: a Gateway or a ListenerSet. */
interface Owner {
  /** Names the parent in messages, such as "Gateway infra/main". */
  readonly text: string;
  readonly namespace: string;
  /** Key of the Gateway. */
  readonly gateway: string;
  readonly listeners: readonly ListenerView[];
}

interface ParentName {
  readonly kind: "Gateway" | "ListenerSet";
  readonly namespace: string;
  readonly name: string;
}

/** @returns undefined when there is no such object, "foreign" when another controller owns it */
function findParent(parent: ParentName, context: AttachContext, read: Read): Owner | "foreign" | undefined {
  const key = nameKey(parent);
  const { namespace } = parent;
  const text = describeRef(parent);
  if (parent.kind === "ListenerSet") {
    const set = read.get(context.listenerSets, key);
    if (set !== undefined) return { text, namespace, gateway: set.gateway, listeners: set.listeners };
    return read.get(context.allListenerSets, key) === undefined ? undefined : "foreign";
  }
  const gateway = read.get(context.gateways, key);
  if (gateway !== undefined) return { text, namespace, gateway: key, listeners: gateway.listeners };
  return read.get(context.allGateways, key) === undefined ? undefined : "foreign";
}

function missing(parent: ParentName): Found {
  return refuse(Reason.NoMatchingParent, `${describeRef(parent)} not found`);
}

function refuse(reason: Reason, message: string): Found {
  return { listeners: [], error: { reason, message } };
}

function attachTo(
  owner: Owner,
  ref: ParentRef,
  route: AttachableRoute,
  { kind, context, read }: { kind: string; context: AttachContext; read: Read },
): Found {
  const named = owner.listeners.filter(
    (listener) =>
      (ref.sectionName === undefined || listener.name === ref.sectionName) &&
      (ref.port === undefined || listener.port === ref.port),
  );
  if (named.length === 0) return refuse(Reason.NoMatchingParent, `${owner.text} has no ${describeSection(ref)}`);
  const serving = named.filter((listener) => listener.error === undefined);
  if (serving.length === 0)
    return refuse(
      Reason.NoMatchingParent,
      named.map((listener) => `listener ${listener.name} cannot serve: ${listener.error?.message}`).join("; "),
    );
  const namespace = route.metadata.namespace ?? "";
  const allowed = serving.filter(
    (listener) =>
      listener.supportedKinds.some((supported) => supported.kind === kind) &&
      allowsNamespace(listener.namespaces, owner.namespace, namespace, { namespaces: context.namespaces, read }),
  );
  if (allowed.length === 0)
    return refuse(
      Reason.NotAllowedByListeners,
      `no listener of ${owner.text} allows a route of kind ${kind} from namespace ${namespace}`,
    );
  const listeners = allowed.flatMap(({ key, name, hostname }): AttachedListener[] => {
    const hostnames = intersectHostnames(hostname, route.spec.hostnames ?? []);
    return hostnames === undefined ? [] : [{ key, name, hostnames }];
  });
  if (listeners.length > 0) return { listeners, error: undefined };
  return refuse(Reason.NoMatchingListenerHostname, `no listener of ${owner.text} serves a hostname of the route`);
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
    error: listeners.size > 0 ? undefined : first.error,
  };
}
