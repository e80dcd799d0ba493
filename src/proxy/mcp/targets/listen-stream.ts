/**
 * The messages that a target sends on its own (GET). A server may close the stream at any time and hold messages for the
 * next one: it is then asked for them by the id of the last event (2025-11-25, "Resumability and Redelivery"). A stream
 * without event ids ends with the server's.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Message } from "../message/message.ts";
import type { EventMessages } from "./event-messages.ts";
import type { Resume } from "./response-stream.ts";

/** Streams in a row that may bring no message before the target is given up. */
const MAX_EMPTY = 5;
const USUAL_RETRY_MS = 1_000;
/** A server that asks for a longer wait is asked earlier: an idle client must not look gone. */
const MAX_RETRY_MS = 30_000;

export class ListenStream implements AsyncIterable<Message> {
  readonly #resume: Resume;
  #events: EventMessages;
  #isCancelled = false;

  constructor(events: EventMessages, resume: Resume) {
    this.#events = events;
    this.#resume = resume;
  }

  cancel(): void {
    this.#isCancelled = true;
    void this.#events.return();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
    let lastId: string | undefined;
    let empty = 0;
    while (empty < MAX_EMPTY) {
      empty++;
      const startedMs = performance.now();
      for await (const message of this.#events) {
        empty = 0;
        yield message;
      }
      // A quiet stream that lasted is no failure.
      if (performance.now() - startedMs > MAX_RETRY_MS) empty = 0;
      lastId = this.#events.lastId ?? lastId;
      if (lastId === undefined || this.#isCancelled) return;
      await sleep(Math.min(this.#events.retryMs ?? USUAL_RETRY_MS, MAX_RETRY_MS), undefined, { ref: false });
      const next = this.#isCancelled ? undefined : await this.#resume(lastId);
      if (next === undefined) return;
      this.#events = next;
      if (this.#isCancelled) void next.return();
    }
  }
}
