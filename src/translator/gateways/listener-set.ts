/**
 * ListenerSets (Gateway API): which Gateway one belongs to, whether that Gateway takes it, and in which order they come.
 * The listeners themselves are translated with those of the Gateway (gateway.ts), since they share its ports.
 */
import type { Gateway } from "../../../generated/types/gateway-api/gateway.ts";
import type { ListenerSet } from "../../../generated/types/gateway-api/listenerset.ts";
import type { KubeObject } from "../../api/object.ts";
import { createdAtMs, GATEWAY_GROUP, nameKey } from "../../api/refs.ts";
import type { Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { allowsNamespace } from "../routes/attach.ts";

export interface ReferencingListenerSet {
  readonly set: ListenerSet;
  /** The Gateway lets it add listeners. */
  readonly allowed: boolean;
}

export interface SetContext {
  readonly setsByGateway: ReadableIndex<ListenerSet>;
  readonly namespaces: Readable<KubeObject>;
}

/** "namespace/name" of the Gateway that it names; undefined for parents of other kinds. */
export function gatewayOfSet({ spec: { parentRef }, metadata }: ListenerSet): string | undefined {
  const { group = GATEWAY_GROUP, kind = "Gateway", namespace = metadata.namespace ?? "", name } = parentRef;
  return group === GATEWAY_GROUP && kind === "Gateway" ? nameKey({ namespace, name }) : undefined;
}

/** Those that name the Gateway, the oldest first: an earlier one keeps the port and host that a later one wants too. */
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
