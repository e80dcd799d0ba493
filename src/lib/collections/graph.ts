/**
 * The incremental computation graph under the translator and the controller: input collections, collections derived
 * from them, and a flush that recomputes only the entries whose reads have changed.
 *
 * set, delete ──> Input (rank 0) ──source──> derive (rank 1) ──source──> derive (rank 2) ──> onChange
 *                    └────────────────── Read, recorded per key ────────────^
 *
 * A derivation computes one output entry per key of its source. While it runs, every call of its `Read` is recorded as
 * a dependency of that key; a write to something that it read marks the key to run again. Collections are ranked in the
 * order of declaration, and a derivation may read only lower ranks. Declaration order is therefore a topological order:
 * one pass per flush suffices, and no cycle can occur.
 *
 * A derivation must be a pure function of its value and of its reads. Then the state after any series of events equals
 * a computation from scratch; a derivation that reads something else keeps stale output without any error.
 */
import { deepEqual } from "../deep-equal.ts";
import { Collection, type Entry, type Equal, type Readable, type ReadableIndex } from "./collection.ts";
import type { ReadableGroups } from "./groups.ts";
import { forgetReads, type Computation } from "./reads.ts";

/** The only way in which a derivation may look at other collections: each call is recorded as a dependency. */
export interface Read {
  get<V>(collection: Readable<V>, key: string): V | undefined;
  byIndex<V>(index: ReadableIndex<V>, value: string): readonly Entry<V>[];
  members(groups: ReadableGroups, group: string): readonly string[];
  /** Returns the number of members of the group. */
  size(groups: ReadableGroups, group: string): number;
}

/** Computes the output of one key; undefined when the key has no output. */
export type Derive<I, O> = (key: string, value: I, read: Read) => O | undefined;

interface Stage {
  run(): void;
  publish(): void;
}

export class Graph {
  readonly #stages: Stage[] = [];

  /** Declares an input. `set` and `delete` change its entries; writing an equal value recomputes nothing. */
  input<V>(name: string, equal: Equal<V> = Object.is): Input<V> {
    const input = new Input<V>(name, this.#stages.length, equal);
    this.#stages.push({ run: () => undefined, publish: () => input.publish() });
    return input;
  }

  /**
   * Declares a collection with one output per key of `source`. The derivation may read only collections declared before
   * it.
   */
  derive<I, O>(name: string, source: Collection<I>, derive: Derive<I, O>, equal: Equal<O> = deepEqual): Collection<O> {
    const output = new Collection<O>(name, this.#stages.length, equal);
    const derivation = new Derivation(source, output, derive);
    this.#stages.push({ run: () => derivation.run(), publish: () => output.publish() });
    return output;
  }

  /**
   * Recomputes the marked keys in order of declaration, which is a topological order, then publishes the net changes.
   */
  flush(): void {
    for (const stage of this.#stages) stage.run();
    for (const stage of this.#stages) stage.publish();
  }
}

export class Input<V> extends Collection<V> {
  set(key: string, value: V): void {
    this.write(key, value);
  }

  delete(key: string): void {
    this.write(key, undefined);
  }
}

class Derivation<I, O> {
  readonly #source: Collection<I>;
  readonly #output: Collection<O>;
  readonly #derive: Derive<I, O>;
  readonly #computations = new Map<string, Computation>();
  readonly #marked = new Set<string>();

  constructor(source: Collection<I>, output: Collection<O>, derive: Derive<I, O>) {
    this.#source = source;
    this.#output = output;
    this.#derive = derive;
    source.follow((key) => this.#marked.add(key));
  }

  run(): void {
    for (const key of this.#marked) {
      const value = this.#source.get(key);
      if (value === undefined) this.#drop(key);
      else this.#output.write(key, this.#compute(key, value));
      // Unmark the key after the computation: when the derivation throws, the next flush tries it again.
      this.#marked.delete(key);
    }
  }

  #compute(key: string, value: I): O | undefined {
    let computation = this.#computations.get(key);
    if (computation === undefined) {
      computation = { mark: () => this.#marked.add(key), reads: new Set() };
      this.#computations.set(key, computation);
    }
    forgetReads(computation);
    return this.#derive(key, value, this.#reader(computation));
  }

  #drop(key: string): void {
    const computation = this.#computations.get(key);
    if (computation !== undefined) forgetReads(computation);
    this.#computations.delete(key);
    this.#output.write(key, undefined);
  }

  #reader(computation: Computation): Read {
    const allow = (collection: { readonly name: string; readonly rank: number }): void => {
      if (collection.rank < this.#output.rank) return;
      throw new Error(`${this.#output.name} reads ${collection.name}, which is computed after it`);
    };
    return {
      get: (collection, key) => {
        allow(collection);
        collection.record(key, computation);
        return collection.get(key);
      },
      byIndex: (index, value) => {
        allow(index.collection);
        index.record(value, computation);
        return index.lookup(value);
      },
      members: (groups, group) => {
        allow(groups.collection);
        groups.record(group, computation);
        return groups.members(group);
      },
      size: (groups, group) => {
        allow(groups.collection);
        groups.record(group, computation);
        return groups.size(group);
      },
    };
  }
}
