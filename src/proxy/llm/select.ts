/**
 * Which provider serves a request (llm.md 6): the first group with a member in rotation serves, and a lower one is touched
 * only when every member above is out. Inside the group the choice is that of every set.
 */
import { Bucket, choose, type Circumstances, type Member, type Wish } from "../balancing/pick.ts";

export class ProviderGroups<T extends Member> {
  readonly #groups: readonly Bucket<T>[];

  constructor(groups: readonly (readonly T[])[]) {
    this.#groups = groups.filter(({ length }) => length > 0).map((members) => new Bucket(members));
  }

  /** @returns undefined when no group has members */
  select(circumstances: Circumstances, wish?: Wish): T | undefined {
    const [first] = this.#groups;
    if (first === undefined) return undefined;
    const now = circumstances.nowMs();
    const serving = this.#groups.find(({ members }) => members.some(({ record }) => !record.isEvicted(now)));
    return choose([serving ?? first], circumstances, wish);
  }
}
