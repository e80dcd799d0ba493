/**
 * Which member of a set serves a call: an endpoint of a Service in its localities, a provider in its groups (proxying.md
 * 7.3 and 7.4). The first bucket with a member in rotation serves; two are drawn and the better score wins, unless a key
 * says which members it prefers. Members that are out of rotation serve when all are.
 */
import type { Uint64 } from "../../lib/uint64.ts";
import { pickByHash } from "./affinity.ts";
import type { EndpointStats } from "./endpoint-stats.ts";

export interface BalancedEndpoint {
  readonly record: EndpointStats;
  /** Its share of the load in relation to its siblings'. 0: it gets nothing. */
  readonly capacity: number;
  /** Of its name, for affinity. */
  readonly hash: Uint64;
}

export interface PickDeps {
  /** In [0, 1). */
  readonly random: () => number;
  /** Milliseconds of a clock that all threads share. */
  readonly nowMs: () => number;
}

/** What one call has to say about the choice. */
export interface PickOptions {
  /** Hash of what requests of one session have in common. */
  readonly affinity: Uint64 | undefined;
  /** Members that failed this request already: they are left out while another one is in rotation. */
  readonly tried: readonly BalancedEndpoint[] | undefined;
}

const NO_OPTIONS: PickOptions = { affinity: undefined, tried: undefined };

export class PriorityLevel<T extends BalancedEndpoint> {
  readonly members: readonly T[];
  readonly #drawable: readonly T[];
  /** Sums of the capacities up to each drawable member; undefined when all are equal. */
  readonly #sums: readonly number[] | undefined;

  constructor(members: readonly T[]) {
    this.members = members;
    this.#drawable = members.filter(({ capacity }) => capacity > 0);
    this.#sums = sumsOf(this.#drawable);
  }

  /** Two draws with replacement: the better one; undefined when there is nobody to draw. */
  draw(random: () => number): T | undefined {
    const one = this.#draw(random());
    if (one === undefined || this.#drawable.length === 1) return one;
    return better(one, this.#draw(random()) as T); // there is one
  }

  /** The same; undefined when a member was hit that may be out of rotation. */
  drawInRotation(random: () => number): T | undefined {
    const one = this.#draw(random());
    if (one === undefined || one.record.mayBeEvicted) return undefined;
    if (this.#drawable.length === 1) return one;
    const other = this.#draw(random()) as T; // there is one
    return other.record.mayBeEvicted ? undefined : better(one, other);
  }

  #draw(random: number): T | undefined {
    const sums = this.#sums;
    if (sums === undefined) return this.#drawable[Math.floor(random * this.#drawable.length)];
    return this.#drawable[indexBySum(sums, random * (sums.at(-1) ?? 0))];
  }
}

/** @param levels the best first @returns undefined when nothing can serve */
export function pickEndpoint<T extends BalancedEndpoint>(
  levels: readonly PriorityLevel<T>[],
  pickDeps: PickDeps,
  pickOptions: PickOptions = NO_OPTIONS,
): T | undefined {
  const { affinity, tried } = pickOptions;
  if (affinity === undefined && tried === undefined) {
    // Draws among all that hit members in rotation alone are draws among those.
    const found = levels[0]?.drawInRotation(pickDeps.random);
    if (found !== undefined) return found;
  }
  const now = pickDeps.nowMs();
  const untried = (member: T) => tried?.includes(member) !== true;
  const active = (member: T) => !member.record.isEvicted(now);
  return (
    (tried === undefined ? undefined : among(levels, (each) => active(each) && untried(each), pickDeps, pickOptions)) ??
    among(levels, active, pickDeps, pickOptions) ??
    leastBad(levels, active, untried, affinity)
  );
}

/** In the first bucket where somebody may serve. */
function among<T extends BalancedEndpoint>(
  levels: readonly PriorityLevel<T>[],
  may: (member: T) => boolean,
  pickDeps: PickDeps,
  { affinity }: PickOptions,
): T | undefined {
  for (const { members } of levels) {
    const able = members.filter((member) => member.capacity > 0 && may(member));
    if (!isFilled(able)) continue;
    return affinity === undefined ? new PriorityLevel(able).draw(pickDeps.random) : pickByHash(affinity, able);
  }
  return undefined;
}

/** Nobody is in rotation: the best of those who are not, in the first bucket that does not hold drained members alone. */
function leastBad<T extends BalancedEndpoint>(
  levels: readonly PriorityLevel<T>[],
  active: (member: T) => boolean,
  untried: (member: T) => boolean,
  affinity: Uint64 | undefined,
): T | undefined {
  for (const { members } of levels) {
    if (members.some(active)) continue;
    const able = members.filter(({ capacity }) => capacity > 0);
    const fresh = able.filter(untried);
    const candidates = fresh.length === 0 ? able : fresh;
    if (!isFilled(candidates)) continue;
    return affinity === undefined ? candidates.reduce(better) : pickByHash(affinity, candidates);
  }
  return undefined;
}

function isFilled<T>(list: readonly T[]): list is readonly [T, ...T[]] {
  return list.length > 0;
}

function better<T extends BalancedEndpoint>(one: T, other: T): T {
  return other.record.score > one.record.score ? other : one;
}

function sumsOf(members: readonly BalancedEndpoint[]): readonly number[] | undefined {
  const capacity = members[0]?.capacity;
  if (members.every((member) => member.capacity === capacity)) return undefined;
  let sum = 0;
  return members.map((member) => (sum += member.capacity));
}

/** Index of the first sum above the value. */
function indexBySum(sums: readonly number[], value: number): number {
  let from = 0;
  let to = sums.length - 1;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((sums[middle] as number) > value) to = middle;
    else from = middle + 1;
  }
  return from;
}
