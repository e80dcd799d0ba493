/** Numbers of connections, counted once for all threads of a process: they tie lines of a log together. */

const CONNECTIONS = 0;

export function allocateIds(): SharedArrayBuffer {
  return new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT);
}

export class Ids {
  readonly #last: BigInt64Array;
  /** A number is given when it is first asked for: most lines have none. */
  readonly #connections = new WeakMap<object, bigint>();

  constructor(memory: SharedArrayBuffer) {
    this.#last = new BigInt64Array(memory);
  }

  /** @param connection whatever lives as long as it does */
  ofConnection(connection: object): bigint {
    const known = this.#connections.get(connection);
    if (known !== undefined) return known;
    const id = Atomics.add(this.#last, CONNECTIONS, 1n) + 1n;
    this.#connections.set(connection, id);
    return id;
  }
}
