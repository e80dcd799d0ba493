/**
 * Holds the version of each resource that this data plane has applied. In: updates and their results. Out: the versions
 * to name on a new stream (`initial_resource_versions` of delta xDS). A refused resource keeps its earlier version, so
 * that on a new stream the controller sends the newer one again and learns again that it is refused.
 */
import type { ApplyResult, ResourceType, ResourceUpdate } from "../../ir/resource.ts";

export class Store {
  readonly #versions = new Map<ResourceType, Map<string, string>>();

  versions(type: ResourceType): Record<string, string> {
    return Object.fromEntries(this.#versions.get(type) ?? []);
  }

  admit(update: ResourceUpdate, { refused }: ApplyResult): void {
    const bad = new Set(refused.map(({ type, key }) => `${type} ${key}`));
    for (const { type, key, version } of update.set) {
      if (!bad.has(`${type} ${key}`)) this.#ofType(type).set(key, version);
    }
    for (const { type, key } of update.removed) {
      if (!bad.has(`${type} ${key}`)) this.#ofType(type).delete(key);
    }
  }

  #ofType(type: ResourceType): Map<string, string> {
    let versions = this.#versions.get(type);
    if (versions === undefined) this.#versions.set(type, (versions = new Map()));
    return versions;
  }
}
