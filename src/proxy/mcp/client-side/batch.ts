/**
 * Answers a batch of messages (2025-03-26): one request after the other, with all answers on one stream, so that what
 * targets say before they respond has a place.
 */
import type { Reply } from "../../exchange/exchange.ts";
import type { CallLifetime } from "../call-lifetime.ts";
import { readMessage, type Message } from "../message/message.ts";
import type { McpAnswer } from "../targets/target.ts";
import { acceptedReply, EventBody, eventReply } from "./write-answer.ts";

/** Handles one message. @returns undefined for notifications and responses @throws McpError, ProxyError */
type Handle = (message: Message) => Promise<McpAnswer | undefined>;
type PrintFailure = (error: unknown, id: string | undefined) => Buffer;

/** @param lifetime of the calls, which go on when the client leaves */
export async function answerBatch(
  messages: readonly Message[],
  handle: Handle,
  print: PrintFailure,
  lifetime: CallLifetime | undefined,
): Promise<Reply> {
  for (const message of messages) if (message.kind !== "request") await handle(message);
  const requests = messages.filter(({ kind }) => kind === "request");
  if (requests.length === 0) return acceptedReply();
  const batch = new BatchAnswers(requests, handle, print);
  const cancel = (): void => batch.cancel();
  return eventReply(new EventBody(batch, { view: ({ bytes }) => bytes, printFailure: undefined, cancel, lifetime }));
}

class BatchAnswers implements AsyncIterable<Message> {
  readonly #requests: readonly Message[];
  readonly #handle: Handle;
  readonly #print: PrintFailure;
  #current: McpAnswer | undefined;
  #isCancelled = false;

  constructor(requests: readonly Message[], handle: Handle, print: PrintFailure) {
    this.#requests = requests;
    this.#handle = handle;
    this.#print = print;
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#current?.cancel();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
    for (const request of this.#requests) {
      if (this.#isCancelled) return;
      try {
        this.#current = await this.#handle(request);
        if (this.#current === undefined) continue;
        if (this.#current.body === undefined) yield* this.#current.messages;
        else yield this.#failure(new Error("refused"), request);
      } catch (error) {
        yield this.#failure(error, request);
      }
    }
  }

  /** A request that fails must not end the others. */
  #failure(error: unknown, { id }: Message): Message {
    const message = readMessage(this.#print(error, id));
    if ("code" in message) throw new Error(message.reason);
    return message;
  }
}
