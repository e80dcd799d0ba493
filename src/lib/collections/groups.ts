/**
 * Counts which members each group has, where many entries may name the same member. Readers run again only when a
 * member joins or leaves, and not when one more of a thousand entries names it. An index lookup turned into a set would
 * cost time in proportion to the entries; the reference counts here do not.
 */
import { Cells, type Computation } from "./reads.ts";

export interface Membership {
  readonly group: string;
  readonly member: string;
}

export interface ReadableGroups {
  readonly collection: { readonly name: string; readonly rank: number };
  members(group: string): readonly string[];
  size(group: string): number;
  record(group: string, computation: Computation): void;
}

export type MembershipsOf<V> = (value: V, key: string) => Iterable<Membership>;

export class Groups<V> implements ReadableGroups {
  readonly collection: { readonly name: string; readonly rank: number };
  readonly #membershipsOf: MembershipsOf<V>;
  /** Number of memberships that name each member, per group. */
  readonly #groups = new Map<string, Map<string, number>>();
  readonly #cells = new Cells();

  constructor(collection: { readonly name: string; readonly rank: number }, membershipsOf: MembershipsOf<V>) {
    this.collection = collection;
    this.#membershipsOf = membershipsOf;
  }

  /** Returns each member once, sorted so that the order of events does not affect the result. */
  members(group: string): readonly string[] {
    return [...(this.#groups.get(group)?.keys() ?? [])].sort();
  }

  size(group: string): number {
    return this.#groups.get(group)?.size ?? 0;
  }

  record(group: string, computation: Computation): void {
    this.#cells.record(group, computation);
  }

  update(key: string, before: V | undefined, after: V | undefined): void {
    // Join before leaving: a member that stays then never drops to a count of zero in between.
    if (after !== undefined) for (const each of this.#membershipsOf(after, key)) this.#join(each);
    if (before !== undefined) for (const each of this.#membershipsOf(before, key)) this.#leave(each);
  }

  #join({ group, member }: Membership): void {
    let members = this.#groups.get(group);
    if (members === undefined) this.#groups.set(group, (members = new Map()));
    const named = members.get(member) ?? 0;
    members.set(member, named + 1);
    if (named === 0) this.#cells.touch(group);
  }

  #leave({ group, member }: Membership): void {
    const members = this.#groups.get(group);
    const named = members?.get(member);
    if (members === undefined || named === undefined) throw new Error(`${member} was never in the group ${group}`);
    if (named > 1) {
      members.set(member, named - 1);
      return;
    }
    members.delete(member);
    if (members.size === 0) this.#groups.delete(group);
    this.#cells.touch(group);
  }
}
