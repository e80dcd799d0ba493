/**
 * Resolves ListenerSets (GEP-1713): the Gateway that a set belongs to, whether that Gateway allows it, and the order of
 * precedence. `../graph.ts` and `gateway.ts` use it. The listeners of a set are translated together with those of the
 * Gateway (gateway.ts), because they share its ports.
 */
import type { Gateway } from "../../../generated/types/gateway-api/gateway.ts";
import type { ListenerSet } from "../../../generated/types/gateway-api/listenerset.ts";
import type { KubeObject } from "../../api/object.ts";
import { createdAtMs, GATEWAY_GROUP, nameKey } from "../../api/refs.ts";
import type { Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { allowsNamespace } from "./allowed-namespaces.ts";

export interface ReferencingListenerSet {
  readonly set: ListenerSet;
  /** The Gateway allows the set to add listeners. */
  readonly allowed: boolean;
}

export interface SetContext {
  readonly setsByGateway: ReadableIndex<ListenerSet>;
  readonly namespaces: Readable<KubeObject>;
}

/** Returns "namespace/name" of the Gateway that the set names, or undefined for a parent of another kind. */
export function gatewayOfSet({ spec: { parentRef }, metadata }: ListenerSet): string | undefined {
  const { group = GATEWAY_GROUP, kind = "Gateway", namespace = metadata.namespace ?? "", name } = parentRef;
  return group === GATEWAY_GROUP && kind === "Gateway" ? nameKey({ namespace, name }) : undefined;
}

/**
 * Returns the sets that name the Gateway, the oldest first: an earlier set keeps a port and hostname that a later one
 * also requests.
 */
export function setsOfGateway(
  { metadata, spec }: Gateway,
  { setsByGateway, namespaces }: SetContext,
  read: Read,
): ReferencingListenerSet[] {
  const own = metadata.namespace ?? "";
  const { from = "None", selector } = spec.allowedListeners?.namespaces ?? {};
  const rule = { from, ...(selector === undefined ? {} : { selector }) };
  return read
    .byIndex(setsByGateway, nameKey({ namespace: own, name: metadata.name }))
    .map(({ key, value }) => ({ key, set: value, created: createdAtMs(value) }))
    .sort((a, b) => a.created - b.created || (a.key < b.key ? -1 : 1))
    .map(({ set }) => ({
      set,
      allowed: allowsNamespace(rule, own, set.metadata.namespace ?? "", { namespaces, read }),
    }));
}
