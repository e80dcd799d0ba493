/**
 * What data planes answered: which policies at least one has applied, and which resources one has refused and why. The
 * last answer of each data plane counts. A refusal outlives its stream, because a lost connection mends nothing; then the
 * next acknowledgement by any data plane of the Gateway takes it back.
 */
import type { ResourceType, ResourceUpdate } from "../ir/resource.ts";
import type { RefusedResource } from "../xds/nack.ts";
import type { StreamId } from "../xds/server/discovery.ts";
import type { AckedResource } from "../xds/server/session.ts";

export interface ResourceId {
  readonly type: ResourceType;
  readonly key: string;
}

/** Gateways are named "namespace/name". */
export interface Acknowledgements {
  /** Whether a data plane has applied this policy. */
  has(policyKey: string): boolean;
  /** What a data plane said when it refused the resource: one of this Gateway, or of any when none is named. */
  refusal(type: ResourceType, key: string, gateway?: string): string | undefined;
  /** @returns the resources of which something new is known */
  ack(gateway: string, stream: StreamId, resources: readonly AckedResource[]): ResourceId[];
  nack(gateway: string, stream: StreamId, refused: readonly RefusedResource[]): void;
  closed(stream: StreamId): void;
  /** These are no longer sent to the Gateway. */
  forget(gateway: string, removed: ResourceUpdate["removed"]): void;
  /** These are no longer sent to any Gateway. */
  forgetEverywhere(removed: ResourceUpdate["removed"]): void;
}

interface Refusal {
  readonly gateway: string;
  /** Unset once the stream is over. */
  stream: StreamId | undefined;
  readonly reason: string;
}

/** A condition is read by people, and an object of the API has little room. */
const MAX_REASON_LENGTH = 1024;

export function createAcknowledgements(): Acknowledgements {
  const applied = new Set<string>();
  const refusals = new Map<string, Refusal[]>();
  const drop = (id: string, isOver: (refusal: Refusal) => boolean): boolean => {
    const before = refusals.get(id);
    if (before === undefined) return false;
    const left = before.filter((refusal) => !isOver(refusal));
    if (left.length === 0) refusals.delete(id);
    else refusals.set(id, left);
    return left.length < before.length;
  };
  return {
    has: (policyKey) => applied.has(policyKey),
    refusal: (type, key, gateway) =>
      refusals.get(idOf({ type, key }))?.find((each) => gateway === undefined || each.gateway === gateway)?.reason,
    ack(gateway, stream, resources) {
      return resources.filter((resource) => {
        const isOver = (refusal: Refusal): boolean =>
          refusal.stream === stream || (refusal.stream === undefined && refusal.gateway === gateway);
        const mended = drop(idOf(resource), isOver);
        const fresh = resource.type === "Policy" && !applied.has(resource.key);
        if (fresh) applied.add(resource.key);
        return mended || fresh;
      });
    },
    nack(gateway, stream, refused) {
      for (const resource of refused) {
        const id = idOf(resource);
        drop(
          id,
          (refusal) => refusal.stream === stream || (refusal.stream === undefined && refusal.gateway === gateway),
        );
        const reason = resource.reason.slice(0, MAX_REASON_LENGTH);
        refusals.set(id, [...(refusals.get(id) ?? []), { gateway, stream, reason }]);
      }
    },
    closed(stream) {
      for (const list of refusals.values())
        for (const refusal of list) if (refusal.stream === stream) refusal.stream = undefined;
    },
    forget(gateway, removed) {
      for (const resource of removed) drop(idOf(resource), (refusal) => refusal.gateway === gateway);
    },
    forgetEverywhere(removed) {
      for (const { type, key } of removed) if (type === "Policy") applied.delete(key);
    },
  };
}

function idOf({ type, key }: ResourceId): string {
  return `${type} ${key}`;
}
