/** Connection numbers, counted once for all threads of a process; they link the log lines of one connection. */

const CONNECTIONS = 0;

export function allocateIds(): SharedArrayBuffer {
  return new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT);
}

export class Ids {
  readonly #last: BigInt64Array;
  /** Numbers are assigned on first use: most connections never need one. */
  readonly #connections = new WeakMap<object, bigint>();

  constructor(memory: SharedArrayBuffer) {
    this.#last = new BigInt64Array(memory);
  }

  /** @param connection an object that lives as long as the connection */
  ofConnection(connection: object): bigint {
    const known = this.#connections.get(connection);
    if (known !== undefined) return known;
    const id = Atomics.add(this.#last, CONNECTIONS, 1n) + 1n;
    this.#connections.set(connection, id);
    return id;
  }
}
