/**
 * Fair queueing for the password checker: groups take turns (round robin), within a group its sources take turns, and
 * the jobs of one source are served first in, first out. A source that asks much delays only itself.
 */

/** The policy and the client network that a job belongs to. */
export interface Asker {
  /** Key of the policy that asks. */
  readonly group: string;
  /** Network of the client, from `clientNetwork`. */
  readonly source: string;
}

interface Group<Job> {
  size: number;
  /** Sources in the order of their turns; none is empty. */
  readonly sources: Map<string, Job[]>;
}

export class TurnQueue<Job extends { readonly asker: Asker }> {
  /** Groups in the order of their turns; none is empty. */
  readonly #groups = new Map<string, Group<Job>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(job: Job): void {
    const { group, source } = job.asker;
    const into: Group<Job> = this.#groups.get(group) ?? { size: 0, sources: new Map() };
    this.#groups.set(group, into);
    const jobs = into.sources.get(source);
    if (jobs === undefined) into.sources.set(source, [job]);
    else jobs.push(job);
    into.size++;
    this.#size++;
  }

  /** Takes the next job, and moves its source and its group to the end. */
  shift(): Job | undefined {
    for (const [groupKey, group] of this.#groups)
      for (const [sourceKey, jobs] of group.sources) {
        const [job] = jobs;
        if (job === undefined) continue;
        // Deleting and setting a key moves it to the end of its map.
        this.#groups.delete(groupKey);
        this.#groups.set(groupKey, group);
        group.sources.delete(sourceKey);
        group.sources.set(sourceKey, jobs);
        this.delete(job);
        return job;
      }
    return undefined;
  }

  delete(job: Job): void {
    const { group: groupKey, source } = job.asker;
    const group = this.#groups.get(groupKey);
    const jobs = group?.sources.get(source);
    const at = jobs?.indexOf(job) ?? -1;
    if (group === undefined || jobs === undefined || at < 0) return;
    jobs.splice(at, 1);
    group.size--;
    this.#size--;
    if (jobs.length === 0) group.sources.delete(source);
    if (group.size === 0) this.#groups.delete(groupKey);
  }

  /**
   * Removes the newest job of the largest source in the largest group.
   *
   * @param asker asks for the room; undefined when any job may give way
   * @returns undefined when the asker itself would hold as much as the largest
   */
  dropNewest(asker?: Asker): Job | undefined {
    const [groupKey, group] = largest(this.#groups, ({ size }) => size) ?? [];
    if (group === undefined) return undefined;
    const [sourceKey, jobs] = largest(group.sources, ({ length }) => length) ?? [];
    const victim = jobs?.at(-1);
    if (jobs === undefined || victim === undefined) return undefined;
    if (asker !== undefined) {
      const held = this.#groups.get(asker.group);
      if (asker.group === groupKey) {
        if (asker.source === sourceKey || (group.sources.get(asker.source)?.length ?? 0) + 1 >= jobs.length)
          return undefined;
      } else if ((held?.size ?? 0) + 1 >= group.size) return undefined;
    }
    this.delete(victim);
    return victim;
  }
}

function largest<Key, Value>(entries: Iterable<[Key, Value]>, sizeOf: (value: Value) => number) {
  let found: [Key, Value] | undefined;
  for (const entry of entries) if (found === undefined || sizeOf(entry[1]) > sizeOf(found[1])) found = entry;
  return found;
}
