/**
 * Reads all HTTP/1.1 upstream sockets of a thread into one shared buffer (`onread` of `net.connect`); node would
 * otherwise allocate 64 KiB for each read. The reader borrows the bytes for the duration of a call and copies what it
 * keeps. While a socket has no reader, the bytes are copied and the socket is a stream like any other.
 */
import type { OnReadOpts, Socket } from "node:net";

/** Node performs reads one after the other, so that no second read overwrites the buffer during a call. */
const SHARED: Buffer = Buffer.allocUnsafeSlow(65_536);

export interface BorrowedReader {
  /** @param bytes valid only during the call; the reader may write to them */
  onBorrowed(bytes: Buffer): void;
}

const sharedBuffers = new WeakMap<Socket, SharedReadBuffer>();

/** Goes into the options of a new socket as `onread`; `belongTo` then connects it with that socket. */
export class SharedReadBuffer implements OnReadOpts {
  readonly buffer: Uint8Array = SHARED;
  readonly callback: OnReadOpts["callback"] = this.#read.bind(this);
  #socket: Socket | undefined;
  #reader: BorrowedReader | undefined;

  belongTo(socket: Socket): void {
    this.#socket = socket;
    sharedBuffers.set(socket, this);
  }

  set reader(reader: BorrowedReader | undefined) {
    this.#reader = reader;
  }

  #read(length: number): boolean {
    const bytes = SHARED.subarray(0, length);
    if (this.#reader === undefined) return this.#socket?.push(Buffer.from(bytes)) ?? false;
    this.#reader.onBorrowed(bytes);
    return true;
  }
}

/** @returns false for a socket without a shared buffer, such as a TLS socket, which emits "data" instead */
export function shareReadBuffer(socket: Socket, reader: BorrowedReader | undefined): boolean {
  const sharedBuffer = sharedBuffers.get(socket);
  if (sharedBuffer === undefined) return false;
  sharedBuffer.reader = reader;
  return true;
}
