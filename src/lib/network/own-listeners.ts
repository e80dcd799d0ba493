/**
 * The listeners of this process that serve operators and probes: admin, metrics, readiness. Traffic must not reach them
 * (SSRF), so all code that connects on behalf of a request or an object asks this list. It is in shared memory: when
 * the system chooses a port, all threads know it at once, and so do threads that start later.
 */
import { isInterfaceAddress, isLoopback, isUnspecified, mappedBytes } from "./local-address.ts";

const MAX_LISTENERS = 16;
const COUNT_BYTES = 4;
/** An entry is the port and then the address as `mappedBytes` returns it. */
const PORT_BYTES = 2;
const ENTRY_BYTES = PORT_BYTES + 16;

export interface BoundAddress {
  /** An IP address; names are not resolved here. */
  readonly address: string;
  readonly port: number;
}

export class OwnListeners {
  /** Memory to pass to other threads. */
  readonly memory: SharedArrayBuffer;
  readonly #count: Int32Array;
  readonly #entries: Buffer;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(COUNT_BYTES + MAX_LISTENERS * ENTRY_BYTES)) {
    this.memory = memory;
    this.#count = new Int32Array(memory, 0, 1);
    this.#entries = Buffer.from(memory, COUNT_BYTES);
  }

  /** Adds a listener. Only one thread may call it. */
  add({ address, port }: BoundAddress): void {
    const count = Atomics.load(this.#count, 0);
    if (count === MAX_LISTENERS) throw new Error(`more than ${MAX_LISTENERS} listeners of our own`);
    const entry = this.#entries.subarray(count * ENTRY_BYTES);
    entry.writeUInt16BE(port, 0);
    mappedBytes(address).copy(entry, PORT_BYTES);
    Atomics.store(this.#count, 0, count + 1);
  }

  /** Tells whether a connection to the address would reach this process. @param address must have passed net.isIP */
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
  // A connection to 0.0.0.0 or :: reaches the loopback address.
  if (isUnspecified(address)) return isUnspecified(own) || isLoopback(own);
  return isUnspecified(own) ? isLoopback(address) || isInterfaceAddress(address) : address.equals(own);
}
