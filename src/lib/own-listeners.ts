/**
 * The listeners of this process that serve operators and probes: admin, metrics, readiness. Traffic must not reach them, so
 * everything that connects somewhere for a request or an object asks here. The list is in shared memory: a listener whose
 * port the system chose is known to all threads at once, and to those that are started later.
 */
import { isInterfaceAddress, isLoopback, isUnspecified, mappedBytes } from "./local-address.ts";

const MAX_LISTENERS = 16;
const COUNT_BYTES = 4;
/** Port, then the address as `mappedBytes` writes it. */
const PORT_BYTES = 2;
const ENTRY_BYTES = PORT_BYTES + 16;

export interface BoundAddress {
  /** An address and no name. */
  readonly address: string;
  readonly port: number;
}

export class OwnListeners {
  /** Can be handed to another thread. */
  readonly memory: SharedArrayBuffer;
  readonly #count: Int32Array;
  readonly #entries: Buffer;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(COUNT_BYTES + MAX_LISTENERS * ENTRY_BYTES)) {
    this.memory = memory;
    this.#count = new Int32Array(memory, 0, 1);
    this.#entries = Buffer.from(memory, COUNT_BYTES);
  }

  /** Called by one thread alone. */
  add({ address, port }: BoundAddress): void {
    const count = Atomics.load(this.#count, 0);
    if (count === MAX_LISTENERS) throw new Error(`more than ${MAX_LISTENERS} listeners of our own`);
    const entry = this.#entries.subarray(count * ENTRY_BYTES);
    entry.writeUInt16BE(port, 0);
    mappedBytes(address).copy(entry, PORT_BYTES);
    Atomics.store(this.#count, 0, count + 1);
  }

  /** Whether a connection to the address would be one to ourselves. @param address that net.isIP knows */
  includes(address: string, port: number): boolean {
    const count = Atomics.load(this.#count, 0);
    for (let at = 0; at < count * ENTRY_BYTES; at += ENTRY_BYTES) {
      if (this.#entries.readUInt16BE(at) !== port) continue;
      const own = this.#entries.subarray(at + PORT_BYTES, at + ENTRY_BYTES);
      if (leadsTo(mappedBytes(address), own)) return true;
    }
    return false;
  }
}

function leadsTo(address: Buffer, own: Buffer): boolean {
  // A connection to 0.0.0.0 or :: goes to the loopback address.
  if (isUnspecified(address)) return isUnspecified(own) || isLoopback(own);
  return isUnspecified(own) ? isLoopback(address) || isInterfaceAddress(address) : address.equals(own);
}
