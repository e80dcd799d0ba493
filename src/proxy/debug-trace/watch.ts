/**
 * One operator who waits for a request, and the events of that request until they are read. DebugTraces opens one for
 * each call of `/debug/trace`.
 *
 * The reader pulls: `read` resolves with the lines that are there, so one that never reads costs no more than the queue.
 * Events beyond it are lost and counted; the last event carries the count and always has room.
 */

const MAX_EVENTS = 256;
const MAX_BYTES = 4 * 1024 * 1024;

/** What `/debug/trace` reads, from this thread or from others. */
export interface TraceReader {
  /** Resolves with at least one event, each a line of JSON; with undefined after the last one. */
  read(): Promise<readonly string[] | undefined>;
  /** Gives up waiting; `read` resolves with undefined. */
  close(): void;
}

export interface WatchOptions {
  /** Text of an expression that chooses the request; undefined for the next one. */
  readonly expression: string | undefined;
  /** Shows the credentials that the client has sent. */
  readonly showsSecrets: boolean;
}

export class Watch implements TraceReader {
  readonly showsSecrets: boolean;
  readonly #onClosed: (watch: Watch) => void;
  #lines: string[] = [];
  #bytes = 0;
  #dropped = 0;
  #isOver = false;
  #waiting: ((lines: readonly string[] | undefined) => void) | undefined;

  constructor(showsSecrets: boolean, onClosed: (watch: Watch) => void) {
    this.showsSecrets = showsSecrets;
    this.#onClosed = onClosed;
  }

  /** Returns the number of events that were lost. */
  get dropped(): number {
    return this.#dropped;
  }

  add(line: string): void {
    if (this.#isOver) return;
    if (this.#lines.length >= MAX_EVENTS || this.#bytes + line.length > MAX_BYTES) this.#dropped++;
    else this.#push(line);
  }

  /** Adds the last event, for which there is always room. */
  finish(line: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#push(line);
  }

  read(): Promise<readonly string[] | undefined> {
    if (this.#lines.length > 0) return Promise.resolve(this.#take());
    if (this.#isOver) {
      this.#onClosed(this);
      return Promise.resolve(undefined);
    }
    const { promise, resolve } = Promise.withResolvers<readonly string[] | undefined>();
    this.#waiting = resolve;
    return promise;
  }

  close(): void {
    this.#isOver = true;
    this.#lines = [];
    this.#waiting?.(undefined);
    this.#waiting = undefined;
    this.#onClosed(this);
  }

  #push(line: string): void {
    this.#lines.push(line);
    this.#bytes += line.length;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(this.#take());
  }

  #take(): readonly string[] {
    const lines = this.#lines;
    this.#lines = [];
    this.#bytes = 0;
    return lines;
  }
}
