/**
 * How long the calls to targets of one message live. Up to 2025-11-25 a client that leaves has not cancelled its request
 * (Streamable HTTP, "Sending Messages to the Server": disconnection is not a cancellation): the target works on, and what
 * it says is read and dropped. The client side begins it; from 2026-07-28 on closing a stream does cancel, and calls then
 * live as long as the exchange.
 */
import { ProxyError } from "../exchange/errors.ts";
import type { Abortable, Exchange } from "../exchange/exchange.ts";

/** Messages of clients that left and whose calls go on, per thread: each may hold a connection to a target. */
const MAX_ABANDONED = 256;
/** Time for which the calls go on without their client. */
const MAX_ABANDONED_MS = 5 * 60_000;
/** Bytes of one answer that are read without a reader. */
const MAX_DROPPED_BYTES = 4_194_304;

let abandoned = 0;

export class CallLifetime implements Abortable {
  readonly #calls: Abortable[] = [];
  readonly #onEnd: (() => void)[] = [];
  readonly #isDetached: boolean;
  #error: Error | undefined;
  #timer: NodeJS.Timeout | undefined;
  #droppedBytes = 0;
  #isAbandoned = false;
  #isOver = false;

  /** @param isDetached whether the answer does not belong to the response of this exchange, and so outlives it */
  constructor(exchange: Pick<Exchange, "onAbort" | "onDone">, isDetached = false) {
    this.#isDetached = isDetached;
    exchange.onAbort(this);
    exchange.onDone(() => {
      if (!this.#isAbandoned && !isDetached) this.end();
    });
  }

  /** Aborts a call together with this message. */
  onAbort(call: Abortable): void {
    if (this.#error === undefined) this.#calls.push(call);
    else call.abort(this.#error);
  }

  /** Runs a callback when no call of this message is under way any more. */
  onDone(callback: () => void): void {
    this.#onEnd.push(callback);
  }

  /** The exchange ended early: at its time limit the calls end as well, and without its client they go on. */
  abort(error: Error): void {
    if (error instanceof ProxyError) this.#abortCalls(error);
    else if (!this.#isDetached) this.abandon();
  }

  /** Gives up the calls. */
  cancel(): void {
    this.#abortCalls(clientLeft());
  }

  /** The client reads no more. @returns whether the answer is to be read on and dropped */
  abandon(): boolean {
    if (this.#isAbandoned || this.#isOver || this.#error !== undefined) return this.#error === undefined;
    if (abandoned >= MAX_ABANDONED) {
      this.#abortCalls(clientLeft());
      return false;
    }
    abandoned++;
    this.#isAbandoned = true;
    this.#timer = setTimeout(() => this.#abortCalls(clientLeft()), MAX_ABANDONED_MS).unref();
    return true;
  }

  /** Counts what was read without a reader. @returns whether more may be */
  drop(bytes: number): boolean {
    this.#droppedBytes += bytes;
    return this.#droppedBytes <= MAX_DROPPED_BYTES;
  }

  /** The answer is complete, or was given up. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (this.#isAbandoned) abandoned--;
    for (const callback of this.#onEnd) callback();
  }

  /** Ends the message of a client that left before there was an answer to read. */
  endAbandoned(): void {
    if (this.#isAbandoned) this.end();
  }

  #abortCalls(error: Error): void {
    this.#error ??= error;
    for (const call of this.#calls.splice(0)) call.abort(error);
  }
}

function clientLeft(): Error {
  return new Error("the client has left");
}
