/**
 * Load balancing by power of two choices: two endpoints are drawn at random, by capacity, and the one with the better
 * score serves the call. The same code chooses endpoints of a Service by locality and LLM providers by group.
 *
 * Levels are tried in order; the first one with an endpoint in rotation serves. With session affinity the key decides
 * instead of the draw (weighted rendezvous hashing, affinity.ts). When every endpoint is ejected, `leastBad` serves
 * from the ejected ones instead of failing the request (panic mode).
 */
import type { Uint64 } from "../../lib/uint64.ts";
import { pickByHash } from "./affinity.ts";
import type { EndpointStats } from "./endpoint-stats.ts";

export interface BalancedEndpoint {
  readonly record: EndpointStats;
  /** Share of the load relative to the other endpoints of the level. 0 drains the endpoint. */
  readonly capacity: number;
  /** Hash of the endpoint name, used for session affinity. */
  readonly hash: Uint64;
}

export interface PickDeps {
  /** Returns a number in [0, 1), like Math.random; tests inject a seeded one. */
  readonly random: () => number;
  /** Milliseconds of a clock that all threads share. */
  readonly nowMs: () => number;
}

/** Properties of one call that influence the choice. */
export interface PickOptions {
  /** Hash that all requests of one session share; undefined when there is no affinity. */
  readonly affinity: Uint64 | undefined;
  /** Endpoints that have already failed this request: they are left out while another one is in rotation. */
  readonly tried: readonly object[] | undefined;
}

const NO_OPTIONS: PickOptions = { affinity: undefined, tried: undefined };

export class PriorityLevel<T extends BalancedEndpoint> {
  readonly members: readonly T[];
  readonly #drawable: readonly T[];
  /** Cumulative capacities of the drawable endpoints, for weighted draws; undefined when all capacities are equal. */
  readonly #sums: readonly number[] | undefined;

  constructor(members: readonly T[]) {
    this.members = members;
    this.#drawable = members.filter(({ capacity }) => capacity > 0);
    this.#sums = sumsOf(this.#drawable);
  }

  /** Draws twice with replacement and returns the better endpoint; undefined when no endpoint has a capacity. */
  draw(random: () => number): T | undefined {
    const one = this.#draw(random());
    if (one === undefined || this.#drawable.length === 1) return one;
    return better(one, this.#draw(random()) as T); // there is one
  }

  /** As `draw`, but returns undefined when a drawn endpoint may be ejected. It looks at no clock and builds no list. */
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

/** @param levels in order of preference @returns undefined when no endpoint has a capacity */
export function pickEndpoint<T extends BalancedEndpoint>(
  levels: readonly PriorityLevel<T>[],
  pickDeps: PickDeps,
  pickOptions: PickOptions = NO_OPTIONS,
): T | undefined {
  const { affinity, tried } = pickOptions;
  if (affinity === undefined && tried === undefined) {
    // Fast path (rejection sampling): draws over all endpoints that hit only endpoints in rotation have the same
    // distribution as draws over the endpoints in rotation.
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

/** Picks in the first level where an endpoint with a capacity satisfies `may`. */
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

/**
 * Panic mode: every endpoint that may get load is ejected. Falls back to the ejected endpoint with the best score, in
 * the first level without active endpoints; the active ones of the other levels have capacity 0 and are drained on
 * purpose.
 */
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

/** Returns the index of the first sum above the value, by binary search. */
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
