/**
 * Records the answers of data planes: the policies, listeners and sockets that at least one has applied, and the resources
 * that one has refused, with the reason. `status-feed.ts` uses it.
 *
 * The last answer of each data plane counts:
 *
 *     NACK ─▶ refused, bound to the stream ──── ACK on the same stream ────────────▶ cleared
 *                      │ stream closes
 *                      ▼
 *             refused, bound to the Gateway ─── ACK or NACK of any of its streams ─▶ cleared, or replaced
 *
 * A NACK outlives its stream, because a lost connection does not correct the resource.
 */
import type { ResourceType, ResourceUpdate } from "../ir/resource.ts";
import type { RejectedResource } from "../xds/nack.ts";
import type { StreamId } from "../xds/server/discovery.ts";
import type { AckedResource } from "../xds/server/session.ts";

export interface ResourceId {
  readonly type: ResourceType;
  readonly key: string;
}

/** Gateways are named "namespace/name". */
export interface Acknowledgements {
  /** Reports whether a data plane has applied this policy or listener; their keys never are the same. */
  has(key: string): boolean;
  /** Reports whether a data plane of this Gateway has opened a socket for its listeners. */
  hasBind(gateway: string): boolean;
  /** Returns why a data plane refused the resource: one of the given Gateway, or of any Gateway when none is given. */
  nackReason(type: ResourceType, key: string, gateway?: string): string | undefined;
  /** Returns everything that is refused now. */
  refusals(): readonly {
    readonly gateway: string;
    readonly type: ResourceType;
    readonly key: string;
    readonly reason: string;
  }[];
  /** @returns the resources whose state has changed */
  ack(gateway: string, stream: StreamId, resources: readonly AckedResource[]): ResourceId[];
  nack(gateway: string, stream: StreamId, refused: readonly RejectedResource[]): void;
  closed(stream: StreamId): void;
  /** Forgets resources that are no longer sent to the Gateway. */
  forget(gateway: string, removed: ResourceUpdate["removed"]): void;
  /** Forgets resources that are no longer sent to any Gateway. */
  forgetEverywhere(removed: ResourceUpdate["removed"]): void;
}

interface Nack {
  readonly resource: ResourceId;
  readonly gateway: string;
  /** undefined once the stream has ended. */
  stream: StreamId | undefined;
  readonly reason: string;
}

/** Limit of a reason. People read it in a condition, and API objects have little room. */
const MAX_REASON_LENGTH = 1024;

export function createAcknowledgements(): Acknowledgements {
  const applied = new Set<string>();
  /** Keys of the Binds that a data plane has applied, by Gateway. */
  const binds = new Map<string, Set<string>>();
  const recordBind = (gateway: string, key: string): boolean => {
    const known = binds.get(gateway);
    binds.set(gateway, (known ?? new Set()).add(key));
    return known === undefined;
  };
  const nacks = new Map<string, Nack[]>();
  const drop = (id: string, isOver: (nack: Nack) => boolean): boolean => {
    const before = nacks.get(id);
    if (before === undefined) return false;
    const left = before.filter((nack) => !isOver(nack));
    if (left.length === 0) nacks.delete(id);
    else nacks.set(id, left);
    return left.length < before.length;
  };
  return {
    has: (key) => applied.has(key),
    hasBind: (gateway) => (binds.get(gateway)?.size ?? 0) > 0,
    nackReason: (type, key, gateway) =>
      nacks.get(idOf({ type, key }))?.find((each) => gateway === undefined || each.gateway === gateway)?.reason,
    refusals: () =>
      [...nacks.values()]
        .flat()
        .map(({ resource: { type, key }, gateway, reason }) => ({ gateway, type, key, reason })),
    ack(gateway, stream, resources) {
      return resources.filter((resource) => {
        const isOver = (nack: Nack): boolean =>
          nack.stream === stream || (nack.stream === undefined && nack.gateway === gateway);
        const mended = drop(idOf(resource), isOver);
        const fresh = isTracked(resource) && !applied.has(resource.key);
        if (fresh) applied.add(resource.key);
        const isFirst = resource.type === "Bind" && recordBind(gateway, resource.key);
        return mended || fresh || isFirst;
      });
    },
    nack(gateway, stream, refused) {
      for (const resource of refused) {
        const id = idOf(resource);
        drop(id, (nack) => nack.stream === stream || (nack.stream === undefined && nack.gateway === gateway));
        const reason = resource.reason.slice(0, MAX_REASON_LENGTH);
        nacks.set(id, [...(nacks.get(id) ?? []), { resource, gateway, stream, reason }]);
      }
    },
    closed(stream) {
      for (const list of nacks.values()) for (const nack of list) if (nack.stream === stream) nack.stream = undefined;
    },
    forget(gateway, removed) {
      for (const resource of removed) {
        drop(idOf(resource), (nack) => nack.gateway === gateway);
        if (resource.type === "Bind") binds.get(gateway)?.delete(resource.key);
      }
      if (binds.get(gateway)?.size === 0) binds.delete(gateway);
    },
    forgetEverywhere(removed) {
      for (const resource of removed) if (isTracked(resource)) applied.delete(resource.key);
    },
  };
}

/** Statuses tell of these whether a data plane has them. */
function isTracked({ type }: ResourceId): boolean {
  return type === "Policy" || type === "Listener";
}

function idOf({ type, key }: ResourceId): string {
  return `${type} ${key}`;
}
