/**
 * The messages of one event stream of a target, as they arrive. The reader pulls them: while messages wait, the
 * connection to the target is paused.
 */
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessages, type Message } from "../message/message.ts";
import { EventParser } from "./event-parser.ts";

/** Messages that may wait for the reader before the connection is paused. */
const MAX_WAITING = 16;
/** What may follow the response on its stream before the connection is given up. */
const MAX_REST_BYTES = 65_536;
const MAX_REST_MS = 1_000;

export interface EventOptions {
  /** A larger message ends the stream with an error. */
  readonly limitBytes: number;
  /** Whether an event may hold a batch of messages, as in 2025-03-26. */
  readonly hasBatches?: boolean;
  /** Gets the events of other types. They are none of Streamable HTTP; browsers ignore them as well. */
  readonly onOther?: (data: Buffer, type: string) => void;
}

export class EventMessages implements BodySink, AsyncIterableIterator<Message> {
  readonly #source: BodyStream;
  readonly #parser: EventParser;
  readonly #options: EventOptions;
  readonly #waiting: Message[] = [];
  #reader: PromiseWithResolvers<IteratorResult<Message>> | undefined;
  #isPaused = false;
  #isOver = false;
  #error: Error | undefined;
  #restBytes = -1;
  #restTimer: NodeJS.Timeout | undefined;

  constructor(source: BodyStream, options: EventOptions) {
    this.#source = source;
    this.#options = options;
    this.#parser = new EventParser(options.limitBytes, this.#onEvent.bind(this));
    source.read(this);
  }

  /** Id of the last event; undefined when the stream gave none. */
  get lastId(): string | undefined {
    return this.#parser.lastId;
  }

  /** Time after which the stream may be asked for again. */
  get retryMs(): number | undefined {
    return this.#parser.retryMs;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Message>> {
    const value = this.#waiting.shift();
    if (value !== undefined) {
      if (this.#isPaused && this.#waiting.length === 0) {
        this.#isPaused = false;
        this.#source.resume();
      }
      return Promise.resolve({ done: false, value });
    }
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    this.#reader = Promise.withResolvers();
    return this.#reader.promise;
  }

  /** Stops reading and closes the stream, unless its short rest is read already. */
  return(): Promise<IteratorResult<Message>> {
    this.#over(undefined);
    if (this.#restBytes < 0) this.#source.destroy();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Drops what follows the response. A short rest is read, so that its connection can be used again. */
  finish(): void {
    if (this.#isOver) return;
    this.#over(undefined);
    this.#restBytes = MAX_REST_BYTES;
    if (this.#isPaused) this.#source.resume();
    this.#restTimer = setTimeout(destroy, MAX_REST_MS, this.#source).unref();
  }

  data(chunk: Buffer): boolean {
    if (this.#isOver) return this.#drop(chunk);
    try {
      this.#parser.push(chunk);
    } catch (error) {
      this.#over(error instanceof Error ? error : new Error(String(error)));
      this.#source.destroy();
      return false;
    }
    this.#isPaused = this.#waiting.length >= MAX_WAITING;
    return !this.#isPaused;
  }

  #drop({ length }: Buffer): boolean {
    this.#restBytes -= length;
    if (this.#restBytes >= 0) return true;
    this.#source.destroy();
    return false;
  }

  end(): void {
    clearTimeout(this.#restTimer);
    this.#over(undefined);
  }

  error(error: Error): void {
    clearTimeout(this.#restTimer);
    this.#over(error);
  }

  #onEvent(data: Buffer, type: string): void {
    const { onOther, hasBatches = false } = this.#options;
    if (type !== "" && type !== "message") return onOther?.(data, type);
    const read = readMessages(data);
    if ("code" in read) throw unreadable(read.reason);
    if (read.isBatch && !hasBatches) throw unreadable("a batch is not a message");
    for (const message of read.list) this.#take(message);
  }

  #take(value: Message): void {
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader === undefined) this.#waiting.push(value);
    else reader.resolve({ done: false, value });
  }

  #over(error: Error | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    const reader = this.#reader;
    this.#reader = undefined;
    if (error !== undefined) reader?.reject(error);
    else reader?.resolve({ done: true, value: undefined });
  }
}

function unreadable(detail: string): McpError {
  const text = "the server sent a message that cannot be read";
  return new McpError(ERROR_CODES.internal, text, { status: 500, detail });
}

function destroy(source: BodyStream): void {
  source.destroy();
}
