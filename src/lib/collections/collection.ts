/**
 * A keyed table that remembers which computations read which keys; the nodes of the incremental graph in graph.ts. An
 * input or a derivation writes entries, and each write marks the computations that read the changed key. Indexes and
 * groups are secondary views that are updated within the same write, so a reader never sees them differ from the
 * values.
 */
import { Groups, type MembershipsOf } from "./groups.ts";
import { Cells, type Computation } from "./reads.ts";

export interface Entry<V> {
  readonly key: string;
  readonly value: V;
}

/** The net change of one key. `before` or `after` is undefined when the key appeared or vanished. */
export interface Change<V> {
  readonly key: string;
  readonly before: V | undefined;
  readonly after: V | undefined;
}

/** The read side of a collection, as derivations use it. It is covariant: a collection of a narrower type fits. */
export interface Readable<V> {
  readonly name: string;
  readonly rank: number;
  get(key: string): V | undefined;
  record(key: string, computation: Computation): void;
}

export interface ReadableIndex<V> {
  readonly collection: { readonly name: string; readonly rank: number };
  lookup(value: string): Entry<V>[];
  record(value: string, computation: Computation): void;
}

export type Equal<V> = (a: V, b: V) => boolean;

/** A secondary view, updated with every write of its collection. */
interface Mirror<V> {
  update(key: string, before: V | undefined, after: V | undefined): void;
}

export class Collection<V> implements Readable<V> {
  readonly name: string;
  /** Position in the order of computation; a derivation may read only collections of a lower rank. */
  readonly rank: number;
  readonly #equal: Equal<V>;
  readonly #values = new Map<string, V>();
  readonly #cells = new Cells();
  readonly #mirrors: Mirror<V>[] = [];
  readonly #followers: ((key: string) => void)[] = [];
  readonly #listeners: ((changes: readonly Change<V>[]) => void)[] = [];
  /** Values before the current batch, so that a batch reports one net change per key. */
  readonly #before = new Map<string, V | undefined>();

  constructor(name: string, rank: number, equal: Equal<V>) {
    this.name = name;
    this.rank = rank;
    this.#equal = equal;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  get size(): number {
    return this.#values.size;
  }

  keys(): MapIterator<string> {
    return this.#values.keys();
  }

  values(): MapIterator<V> {
    return this.#values.values();
  }

  /** Adds an index that finds entries by something they contain. Declare it before the first entry arrives. */
  index(valuesOf: (value: V, key: string) => Iterable<string>): Index<V> {
    return this.#mirror(new Index(this, valuesOf));
  }

  /**
   * Adds a counted set of the members that entries name, without keeping the entries. Declare it before the first entry
   * arrives.
   */
  groups(membershipsOf: MembershipsOf<V>): Groups<V> {
    return this.#mirror(new Groups(this, membershipsOf));
  }

  /** Calls the listener with the net changes, once per flush, after everything has been computed. */
  onChange(listener: (changes: readonly Change<V>[]) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Calls the follower at once for each changed key, and for each existing one. Derivations follow their source with
   * it.
   */
  follow(follower: (key: string) => void): void {
    this.#followers.push(follower);
    for (const key of this.#values.keys()) follower(key);
  }

  /** Sets the value of a key, or removes the key when the value is undefined. An equal value marks no reader. */
  write(key: string, after: V | undefined): void {
    const before = this.#values.get(key);
    if (before === after) return;
    if (before !== undefined && after !== undefined && this.#equal(before, after)) return;
    if (!this.#before.has(key)) this.#before.set(key, before);
    if (after === undefined) this.#values.delete(key);
    else this.#values.set(key, after);
    for (const mirror of this.#mirrors) mirror.update(key, before, after);
    this.#cells.touch(key);
    for (const follow of this.#followers) follow(key);
  }

  record(key: string, computation: Computation): void {
    this.#cells.record(key, computation);
  }

  /** Ends a batch: passes the changes since the last call to the listeners. */
  publish(): void {
    if (this.#before.size === 0) return;
    const changes: Change<V>[] = [];
    for (const [key, before] of this.#before) {
      const after = this.#values.get(key);
      if (before === after) continue;
      if (before !== undefined && after !== undefined && this.#equal(before, after)) continue;
      changes.push({ key, before, after });
    }
    this.#before.clear();
    if (changes.length > 0) for (const listener of this.#listeners) listener(changes);
  }

  #mirror<M extends Mirror<V>>(mirror: M): M {
    for (const [key, value] of this.#values) mirror.update(key, undefined, value);
    this.#mirrors.push(mirror);
    return mirror;
  }
}

export class Index<V> implements ReadableIndex<V> {
  readonly collection: Collection<V>;
  readonly #valuesOf: (value: V, key: string) => Iterable<string>;
  readonly #keys = new Map<string, Set<string>>();
  readonly #cells = new Cells();

  constructor(collection: Collection<V>, valuesOf: (value: V, key: string) => Iterable<string>) {
    this.collection = collection;
    this.#valuesOf = valuesOf;
  }

  /**
   * Returns the entries that contain the value, sorted by key so that the order of events does not affect the result.
   */
  lookup(value: string): Entry<V>[] {
    const keys = this.#keys.get(value);
    if (keys === undefined) return [];
    const entries: Entry<V>[] = [];
    for (const key of [...keys].sort()) {
      const found = this.collection.get(key);
      if (found !== undefined) entries.push({ key, value: found });
    }
    return entries;
  }

  update(key: string, before: V | undefined, after: V | undefined): void {
    const old = new Set(before === undefined ? [] : this.#valuesOf(before, key));
    const now = new Set(after === undefined ? [] : this.#valuesOf(after, key));
    for (const value of old) if (!now.has(value)) this.#remove(value, key);
    for (const value of now) {
      let keys = this.#keys.get(value);
      if (keys === undefined) this.#keys.set(value, (keys = new Set()));
      keys.add(key);
    }
    // A lookup returns whole values, so its readers must run again even when an entry keeps the indexed value.
    for (const value of new Set([...old, ...now])) this.#cells.touch(value);
  }

  record(value: string, computation: Computation): void {
    this.#cells.record(value, computation);
  }

  #remove(value: string, key: string): void {
    const keys = this.#keys.get(value);
    keys?.delete(key);
    if (keys?.size === 0) this.#keys.delete(value);
  }
}
