/**
 * Turns changes of collections into updates: the resources that a data plane gains, replaces or loses.
 * `../translate.ts` uses it.
 *
 * In: the resources of each object, with the Gateways they go to. Out: one update for all Gateways together, and one
 * for each Gateway that is affected. `collect` only records the last state of each key; `take` compares it with what is
 * held, so a resource that changed back within a step causes no update.
 */
import type { Resource, ResourceUpdate } from "../../ir/resource.ts";
import type { Change } from "../../lib/collections/collection.ts";

export interface ScopedResource {
  readonly resource: Resource;
  /** Gateways that get the resource; never empty, since a resource without a Gateway is not sent. */
  readonly gateways: readonly string[];
}

interface MutableUpdate {
  set: Resource[];
  removed: { type: Resource["type"]; key: string }[];
}

export class ResourceStore {
  readonly #held = new Map<string, ScopedResource>();
  readonly #perGateway = new Map<string, Map<string, Resource>>();
  readonly #pending = new Map<string, ScopedResource | undefined>();

  /**
   * Records changes. A key that one collection gives up and another takes over in the same step counts as a
   * replacement.
   */
  collect(changes: readonly Change<readonly ScopedResource[]>[]): void {
    for (const { before = [], after = [] } of changes) {
      for (const { resource } of before) {
        const key = idOf(resource);
        if (!this.#pending.has(key)) this.#pending.set(key, undefined);
      }
      for (const sent of after) this.#pending.set(idOf(sent.resource), sent);
    }
  }

  /** Ends the step and returns its updates. */
  take(): { readonly update: ResourceUpdate; readonly byGateway: ReadonlyMap<string, ResourceUpdate> } {
    const update: MutableUpdate = { set: [], removed: [] };
    const byGateway = new Map<string, MutableUpdate>();
    for (const [key, after] of this.#pending) {
      const before = this.#held.get(key);
      record(update, before?.resource, after?.resource);
      for (const gateway of new Set([...(before?.gateways ?? []), ...(after?.gateways ?? [])])) {
        const own = byGateway.get(gateway) ?? { set: [], removed: [] };
        const had = before?.gateways.includes(gateway) === true ? before.resource : undefined;
        const has = after?.gateways.includes(gateway) === true ? after.resource : undefined;
        if (record(own, had, has)) byGateway.set(gateway, own);
        this.#hold(gateway, key, has);
      }
      if (after === undefined) this.#held.delete(key);
      else this.#held.set(key, after);
    }
    this.#pending.clear();
    return { update, byGateway };
  }

  resources(): Resource[] {
    return [...this.#held.values()].map(({ resource }) => resource);
  }

  resource(type: Resource["type"], key: string): Resource | undefined {
    return this.#held.get(idOf({ type, key }))?.resource;
  }

  resourcesOf(gateway: string): Resource[] {
    return [...(this.#perGateway.get(gateway)?.values() ?? [])];
  }

  #hold(gateway: string, key: string, resource: Resource | undefined): void {
    let held = this.#perGateway.get(gateway);
    if (held === undefined) this.#perGateway.set(gateway, (held = new Map()));
    if (resource !== undefined) held.set(key, resource);
    else held.delete(key);
    if (held.size === 0) this.#perGateway.delete(gateway);
  }
}

/** @returns whether the update gained an entry */
function record(update: MutableUpdate, before: Resource | undefined, after: Resource | undefined): boolean {
  if (after === undefined) {
    if (before === undefined) return false;
    update.removed.push({ type: before.type, key: before.key });
    return true;
  }
  if (before?.version === after.version) return false;
  update.set.push(after);
  return true;
}

function idOf({ type, key }: Pick<Resource, "type" | "key">): string {
  return `${type} ${key}`;
}

/** Compares by version: equal content has an equal version, so the messages need no comparison. */
export function equalScopedResources(a: readonly ScopedResource[], b: readonly ScopedResource[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ resource, gateways }, at) => {
      const other = b[at];
      return (
        other !== undefined &&
        other.resource.type === resource.type &&
        other.resource.key === resource.key &&
        other.resource.version === resource.version &&
        other.gateways.join() === gateways.join()
      );
    })
  );
}
