/**
 * The messages that answer one request of a client: what the target says meanwhile, and the response at the end. A
 * stream that ends early and gave event ids is asked for again from the last one (2025-11-25, "Resumability and
 * Redelivery"), while the client's stream stays open.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import type { EventMessages } from "./event-messages.ts";
import { toMcpError } from "./send-call.ts";

/** Asks for the events after one. @returns undefined when the target does not offer them */
export type Resume = (lastEventId: string) => Promise<EventMessages | undefined>;

const MAX_RESUMES = 5;
/** Time in which a broken stream is asked for again. */
const MAX_RESUME_MS = 30_000;
const USUAL_RETRY_MS = 1_000;

export class ResponseStream implements AsyncIterable<Message> {
  readonly #id: string;
  readonly #resume: Resume;
  #events: EventMessages;
  #isCancelled = false;

  /** @param id of the request, whose response ends the stream */
  constructor(events: EventMessages, id: string, resume: Resume) {
    this.#events = events;
    this.#id = id;
    this.#resume = resume;
  }

  cancel(): void {
    this.#isCancelled = true;
    void this.#events.return();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
    const startedMs = performance.now();
    let lastId: string | undefined;
    for (let resumes = 0; ; resumes++) {
      const isAnswered = yield* this.#messages();
      if (isAnswered || this.#isCancelled) return;
      lastId = this.#events.lastId ?? lastId;
      const waitMs = this.#events.retryMs ?? USUAL_RETRY_MS;
      const isLate = performance.now() + waitMs - startedMs > MAX_RESUME_MS;
      if (lastId === undefined || resumes === MAX_RESUMES || isLate) throw cutOff();
      await sleep(waitMs, undefined, { ref: false });
      if (this.#isCancelled) return;
      const events = await this.#resume(lastId);
      if (events === undefined) throw cutOff();
      this.#events = events;
    }
  }

  /** @returns true when the response was among them */
  async *#messages(): AsyncGenerator<Message, boolean> {
    const events = this.#events;
    try {
      for (;;) {
        const { done, value } = await events.next();
        if (done === true) return false;
        const isResponse = value.kind === "result" || value.kind === "error";
        // The target answers another request here, which it must not.
        if (isResponse && value.id !== this.#id) continue;
        if (isResponse) events.finish();
        yield value;
        if (isResponse) return true;
      }
    } catch (error) {
      if (events.lastId !== undefined && !(error instanceof McpError)) return false;
      throw toMcpError(error);
    }
  }
}

function cutOff(): McpError {
  return new McpError(ERROR_CODES.internal, "the server ended its stream without an answer", { status: 500 });
}
