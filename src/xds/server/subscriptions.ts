/**
 * What one data plane holds of one type, and what has changed since it was told. In: versions it names on connecting,
 * changed keys. Out: the difference to a wanted state, taken once. Not here: the wire.
 */
import type { Resource } from "../../ir/resource.ts";

export interface Delta {
  readonly set: readonly Resource[];
  readonly removed: readonly string[];
}

export class Subscription {
  /** Version by key, as sent and not yet contradicted by a removal. */
  readonly #held: Map<string, string>;
  readonly #dirty = new Set<string>();

  /** @param initialVersions what the data plane kept from an earlier stream */
  constructor(initialVersions: Readonly<Record<string, string>>) {
    this.#held = new Map(Object.entries(initialVersions));
    for (const key of this.#held.keys()) this.#dirty.add(key);
  }

  get dirty(): boolean {
    return this.#dirty.size > 0;
  }

  mark(key: string): void {
    this.#dirty.add(key);
  }

  holds(resource: Resource): boolean {
    return this.#held.get(resource.key) === resource.version;
  }

  /** The difference between what is held and `current`, among the marked keys. Afterwards it counts as held. */
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
