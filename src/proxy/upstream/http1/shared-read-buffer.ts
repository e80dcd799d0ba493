/**
 * What upstreams send is read into one piece of memory that all connections of a thread share: node would otherwise set
 * aside 64 KiB for every read. A reader gets the bytes for the time of a call and copies what it keeps; as long as a
 * socket has no reader it is a stream like any other.
 */
import type { OnReadOpts, Socket } from "node:net";

/** Reads are done one after the other: nobody else sees the memory before the call is over. */
const SHARED: Buffer = Buffer.allocUnsafeSlow(65_536);

export interface BorrowedReader {
  /** @param bytes valid only during the call, and free to be written to */
  onLent(bytes: Buffer): void;
}

const loans = new WeakMap<Socket, SharedReadBuffer>();

/** For the options of a socket that is about to be made; `belongTo` then makes it known. */
export class SharedReadBuffer implements OnReadOpts {
  readonly buffer: Uint8Array = SHARED;
  readonly callback: OnReadOpts["callback"] = this.#read.bind(this);
  #socket: Socket | undefined;
  #reader: BorrowedReader | undefined;

  belongTo(socket: Socket): void {
    this.#socket = socket;
    loans.set(socket, this);
  }

  set reader(reader: BorrowedReader | undefined) {
    this.#reader = reader;
  }

  #read(length: number): boolean {
    const bytes = SHARED.subarray(0, length);
    if (this.#reader === undefined) return this.#socket?.push(Buffer.from(bytes)) ?? false;
    this.#reader.onLent(bytes);
    return true;
  }
}

/** @returns false for a socket without a loan, as one with TLS: its bytes come by "data" */
export function shareReadBuffer(socket: Socket, reader: BorrowedReader | undefined): boolean {
  const loan = loans.get(socket);
  if (loan === undefined) return false;
  loan.reader = reader;
  return true;
}
