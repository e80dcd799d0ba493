/**
 * The incremental engine: input collections, collections derived from them, and a flush that recomputes only what read
 * something that changed. In: set and delete on inputs. Out: net changes per collection. A derivation must be a pure
 * function of its value and of what it reads; then the state after any series of events equals a fresh computation.
 */
import { deepEqual } from "../deep-equal.ts";
import { Collection, type Entry, type Equal, type Readable, type ReadableIndex } from "./collection.ts";
import type { ReadableGroups } from "./groups.ts";
import { forgetReads, type Computation } from "./reads.ts";

/** The only way for a derivation to look at other collections: every call is recorded. */
export interface Read {
  get<V>(collection: Readable<V>, key: string): V | undefined;
  byIndex<V>(index: ReadableIndex<V>, value: string): readonly Entry<V>[];
  members(groups: ReadableGroups, group: string): readonly string[];
  /** How many members there are. */
  size(groups: ReadableGroups, group: string): number;
}

/** `undefined` as result means that this key has no output. */
export type Derive<I, O> = (key: string, value: I, read: Read) => O | undefined;

interface Stage {
  run(): void;
  publish(): void;
}

export class Graph {
  readonly #stages: Stage[] = [];

  /** Entries are replaced by `set` and `delete`; equal values wake nobody. */
  input<V>(name: string, equal: Equal<V> = Object.is): Input<V> {
    const input = new Input<V>(name, this.#stages.length, equal);
    this.#stages.push({ run: () => undefined, publish: () => input.publish() });
    return input;
  }

  /** One output per key of `source`. It may read collections declared before it, never itself or later ones. */
  derive<I, O>(name: string, source: Collection<I>, derive: Derive<I, O>, equal: Equal<O> = deepEqual): Collection<O> {
    const output = new Collection<O>(name, this.#stages.length, equal);
    const derivation = new Derivation(source, output, derive);
    this.#stages.push({ run: () => derivation.run(), publish: () => output.publish() });
    return output;
  }

  /** Recomputes in order of declaration, which is a topological order, then reports changes. */
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
      // Only now: a derivation that throws stays marked and is tried again by the next flush.
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
