/**
 * Reads the streams of several targets at once, in order of arrival. Each source is asked for its next message when the
 * one before was taken, so a client that reads slowly slows all of them and nothing piles up here. Sources can come and
 * go while the stream is read. (Promise.race over the pending reads would keep a reaction on each of them for every
 * message of the others, as long as a quiet stream lasts.)
 */
import type { Message } from "../../message/message.ts";
import type { McpAnswer } from "../../targets/target.ts";

/** What a source did: it sent a message, ended, or failed. `own` messages were injected. */
export type Arrival<S> =
  | { readonly source: S; readonly kind: "message" | "own"; readonly message: Message }
  | { readonly source: S; readonly kind: "end" }
  | { readonly source: S; readonly kind: "error"; readonly error: unknown };

export class StreamMerger<S> {
  /** Answers that are read, to be cancelled with the stream. */
  readonly #open = new Map<S, McpAnswer>();
  readonly #arrived: { readonly arrival: Arrival<S>; readonly taken: () => void }[] = [];
  readonly #staysOpen: boolean;
  #wake: (() => void) | undefined;
  #closed = false;

  /** @param staysOpen true when sources may come after the last one has ended */
  constructor(staysOpen: boolean) {
    this.#staysOpen = staysOpen;
  }

  get size(): number {
    return this.#open.size;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  has(source: S): boolean {
    return this.#open.has(source);
  }

  /** Begins to read the messages of an answer. */
  add(source: S, answer: McpAnswer): void {
    if (this.#closed) return answer.cancel();
    this.#open.set(source, answer);
    // Errors of the stream arrive as such.
    void this.#read(source, answer);
  }

  /** Stops reading a source; what of it has not been taken yet is dropped. */
  remove(source: S): void {
    const answer = this.#open.get(source);
    this.#open.delete(source);
    answer?.cancel();
  }

  /** Gives up all sources, each with an error. */
  failAll(error: Error): void {
    for (const [source, answer] of this.#open) {
      answer.cancel();
      this.#end(source, { source, kind: "error", error });
    }
  }

  /** Returns the next arrival; undefined when the stream was closed, or when no source is left and none may come. */
  async next(): Promise<Arrival<S> | undefined> {
    for (;;) {
      const first = this.#arrived.shift();
      first?.taken();
      if (this.#closed) return undefined;
      if (first !== undefined && (first.arrival.kind !== "message" || this.#open.has(first.arrival.source)))
        return first.arrival;
      if (first !== undefined) continue;
      if (this.#open.size === 0 && !this.#staysOpen) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /**
   * Puts a notification of our own among the messages of the sources. It is dropped while an equal one waits for a client
   * that reads slowly. @param source any; it need not be read
   */
  inject(source: S, message: Message): void {
    const isWaiting = this.#arrived.some(
      ({ arrival }) => arrival.kind === "own" && arrival.message.method === message.method,
    );
    if (!isWaiting) void this.#push({ source, kind: "own", message });
  }

  /** Cancels all sources. */
  close(): void {
    this.#closed = true;
    for (const answer of this.#open.values()) answer.cancel();
    this.#open.clear();
    for (const { taken } of this.#arrived.splice(0)) taken();
    this.#wake?.();
  }

  async #read(source: S, answer: McpAnswer): Promise<void> {
    try {
      for await (const message of answer.messages) {
        if (this.#open.get(source) !== answer) return;
        await this.#push({ source, kind: "message", message });
      }
    } catch (error) {
      if (this.#open.get(source) === answer) this.#end(source, { source, kind: "error", error });
      return;
    }
    if (this.#open.get(source) === answer) this.#end(source, { source, kind: "end" });
  }

  /** The end is pushed before the source goes, so that a reader between the two does not think that all is over. */
  #end(source: S, arrival: Arrival<S>): void {
    void this.#push(arrival);
    this.#open.delete(source);
  }

  /** Resolves when the arrival was taken. */
  #push(arrival: Arrival<S>): Promise<void> {
    return new Promise((taken) => {
      this.#arrived.push({ arrival, taken });
      this.#wake?.();
    });
  }
}
