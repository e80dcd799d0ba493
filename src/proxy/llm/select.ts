/**
 * Which provider serves a request (llm.md 6): the first group with a member in rotation serves, and a lower one is touched
 * only when every member above is out. Inside the group the choice is that of every set.
 */
import {
  PriorityLevel,
  pickEndpoint,
  type PickDeps,
  type BalancedEndpoint,
  type PickOptions,
} from "../balancing/pick.ts";

export class ProviderGroups<T extends BalancedEndpoint> {
  readonly #groups: readonly PriorityLevel<T>[];

  constructor(groups: readonly (readonly T[])[]) {
    this.#groups = groups.filter(({ length }) => length > 0).map((members) => new PriorityLevel(members));
  }

  /** @returns undefined when no group has members */
  select(pickDeps: PickDeps, pickOptions?: PickOptions): T | undefined {
    const [first] = this.#groups;
    if (first === undefined) return undefined;
    const now = pickDeps.nowMs();
    const serving = this.#groups.find(({ members }) => members.some(({ record }) => !record.isEvicted(now)));
    return pickEndpoint([serving ?? first], pickDeps, pickOptions);
  }
}
