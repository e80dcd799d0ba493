/**
 * Messages on their way from one event stream to one of its readers. `sse-connection.ts` has several readers of a stream
 * and waits while the queue of one is full.
 */
import type { Message } from "../message/message.ts";

/** Messages that may wait for the reader. */
const MAX_WAITING = 16;

export class MessageQueue implements AsyncIterable<Message> {
  readonly #onCancel: () => void;
  #waiting: Message[] = [];
  #reader: PromiseWithResolvers<void> | undefined;
  #room: PromiseWithResolvers<void> | undefined;
  #isOver = false;
  #error: Error | undefined;

  /** @param onCancel called once when the reader leaves before the end */
  constructor(onCancel: () => void) {
    this.#onCancel = onCancel;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Resolves when there is room for a further message. What comes after the end is dropped. */
  async push(message: Message): Promise<void> {
    if (this.#isOver) return;
    this.#waiting.push(message);
    this.#wakeReader();
    if (this.#waiting.length < MAX_WAITING) return;
    this.#room ??= Promise.withResolvers();
    await this.#room.promise;
  }

  /** Ends the messages. @param error thrown at the reader after the messages that wait */
  end(error?: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#wakeReader();
    this.#makeRoom();
  }

  /** The reader leaves. */
  cancel(): void {
    if (!this.#isOver) this.#onCancel();
    this.#waiting = [];
    this.end();
    this.#makeRoom();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
    try {
      for (;;) {
        const message = this.#waiting.shift();
        if (message !== undefined) {
          this.#makeRoom();
          yield message;
        } else if (this.#error !== undefined) throw this.#error;
        else if (this.#isOver) return;
        else {
          this.#reader = Promise.withResolvers();
          await this.#reader.promise;
        }
      }
    } finally {
      this.cancel();
    }
  }

  #wakeReader(): void {
    this.#reader?.resolve();
    this.#reader = undefined;
  }

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }
}
