/**
 * The dependency edges of the incremental graph, in both directions. A cell is one thing that can be read (a key of a
 * collection, a value of an index); a computation is one run of a derivation for one key. Touching a cell marks every
 * computation that read it. A cell is deleted with its last reader, so the memory follows the live reads.
 */
export interface Computation {
  /** Schedules the computation to run again in this flush. */
  mark(): void;
  readonly reads: Set<Cell>;
}

interface Cell {
  readonly readers: Set<Computation>;
  dispose(): void;
}

export class Cells {
  readonly #cells = new Map<string, Cell>();

  record(name: string, computation: Computation): void {
    let cell = this.#cells.get(name);
    if (cell === undefined) {
      cell = { readers: new Set(), dispose: () => this.#cells.delete(name) };
      this.#cells.set(name, cell);
    }
    cell.readers.add(computation);
    computation.reads.add(cell);
  }

  touch(name: string): void {
    const cell = this.#cells.get(name);
    if (cell !== undefined) for (const computation of cell.readers) computation.mark();
  }
}

/**
 * Removes all edges of a computation, before it runs again or when its key is gone. Without this, a read of the
 * previous run would still trigger the next one.
 */
export function forgetReads(computation: Computation): void {
  for (const cell of computation.reads) {
    cell.readers.delete(computation);
    if (cell.readers.size === 0) cell.dispose();
  }
  computation.reads.clear();
}
