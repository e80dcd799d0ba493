/**
 * Tracks which resources of one type a data plane holds, and which have changed since the last response. `session.ts`
 * uses it. In: the versions that the data plane names when it connects, and changed keys. Out: the difference to a
 * wanted state.
 *
 * A sent resource counts as held, even when the data plane refuses it: sending the same version again on this stream
 * would only cause the same NACK.
 */
import type { Resource } from "../../ir/resource.ts";

export interface Delta {
  readonly set: readonly Resource[];
  readonly removed: readonly string[];
}

export class Subscription {
  /** Versions by key, as sent to the data plane or named by it. */
  readonly #held: Map<string, string>;
  readonly #dirty = new Set<string>();

  /** @param initialVersions versions that the data plane kept from an earlier stream */
  constructor(initialVersions: Readonly<Record<string, string>>) {
    this.#held = new Map(Object.entries(initialVersions));
    for (const key of this.#held.keys()) this.#dirty.add(key);
  }

  mark(key: string): void {
    this.#dirty.add(key);
  }

  holds(resource: Resource): boolean {
    return this.#held.get(resource.key) === resource.version;
  }

  /**
   * Takes the difference between the held and the `current` resources among the marked keys, which then counts as held.
   */
  take(current: ReadonlyMap<string, Resource>): Delta {
    const set: Resource[] = [];
    const removed: string[] = [];
    for (const key of this.#dirty) {
      const resource = current.get(key);
      if (resource === undefined) {
        if (this.#held.delete(key)) removed.push(key);
      } else if (!this.holds(resource)) {
        this.#held.set(key, resource.version);
        set.push(resource);
      }
    }
    this.#dirty.clear();
    return { set, removed };
  }
}
