/**
 * Keeps the keys of the resources whose acknowledgement a status tells of, for each Gateway, with a digest of them.
 * `replica-acknowledgements.ts` uses it. Two replicas that hold the same resources have the same digest, so a report
 * names what is missing instead of thousands of keys that are there.
 */
import { createHash } from "node:crypto";
import type { ResourceType } from "../../ir/resource.ts";
import type { TranslationStep } from "../../translator/translator.ts";

type TrackedType = Extract<ResourceType, "Policy" | "Listener" | "Bind">;

export interface TrackedResource {
  readonly type: TrackedType;
  readonly key: string;
}

interface TrackedGateway {
  /** Types by key; keys of different types never are the same. */
  readonly types: Map<string, TrackedType>;
  digest: bigint;
}

export class TrackedResources {
  readonly #gateways = new Map<string, TrackedGateway>();

  /** @returns the Gateways whose keys changed */
  follow({ byGateway }: Pick<TranslationStep, "byGateway">): string[] {
    const changed: string[] = [];
    for (const [gateway, { set, removed }] of byGateway) {
      const tracked = this.#gateways.get(gateway) ?? { types: new Map<string, TrackedType>(), digest: 0n };
      const before = tracked.digest;
      for (const { type, key } of set) if (isTracked(type)) add(tracked, type, key);
      for (const { type, key } of removed)
        if (isTracked(type) && tracked.types.delete(key)) tracked.digest ^= digestOf(key);
      if (tracked.types.size === 0) this.#gateways.delete(gateway);
      else this.#gateways.set(gateway, tracked);
      if (tracked.digest !== before) changed.push(gateway);
    }
    return changed;
  }

  /** Returns the digest in the form of a report; undefined when nothing of the Gateway is tracked. */
  digest(gateway: string): string | undefined {
    return this.#gateways.get(gateway)?.digest.toString(16);
  }

  of(gateway: string): TrackedResource[] {
    return Array.from(this.#gateways.get(gateway)?.types ?? [], ([key, type]) => ({ type, key }));
  }
}

function add(tracked: TrackedGateway, type: TrackedType, key: string): void {
  if (tracked.types.has(key)) return;
  tracked.types.set(key, type);
  // Exclusive or: the digest does not depend on the order in which a replica has read the objects.
  tracked.digest ^= digestOf(key);
}

/** Decides whether a status tells of the acknowledgement of resources of a type. */
export function isTracked(type: ResourceType): type is TrackedType {
  return type === "Policy" || type === "Listener" || type === "Bind";
}

function digestOf(key: string): bigint {
  return createHash("sha256").update(key).digest().readBigUInt64BE();
}
