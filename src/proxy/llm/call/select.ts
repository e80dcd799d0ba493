/**
 * Chooses the provider of a request by groups: the first group with a provider in rotation serves, and a lower group
 * serves only when all providers above are ejected. Inside the group `pickEndpoint` decides (power of two choices).
 */
import {
  PriorityLevel,
  pickEndpoint,
  type PickDeps,
  type BalancedEndpoint,
  type PickOptions,
} from "../../balancing/pick.ts";

export class ProviderGroups<T extends BalancedEndpoint> {
  readonly #groups: readonly PriorityLevel<T>[];

  constructor(groups: readonly (readonly T[])[]) {
    this.#groups = groups.filter(({ length }) => length > 0).map((members) => new PriorityLevel(members));
  }

  /** All providers, for operators. */
  get all(): readonly T[] {
    return this.#groups.flatMap(({ members }) => members);
  }

  /** @returns undefined when no group has providers */
  select(pickDeps: PickDeps, pickOptions?: PickOptions): T | undefined {
    const [first] = this.#groups;
    if (first === undefined) return undefined;
    const now = pickDeps.nowMs();
    const serving = this.#groups.find(({ members }) => members.some(({ record }) => !record.isEvicted(now)));
    return pickEndpoint([serving ?? first], pickDeps, pickOptions);
  }
}
