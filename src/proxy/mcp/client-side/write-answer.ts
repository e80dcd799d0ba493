/**
 * Writes answers to MCP clients: one message as JSON, several as a stream of events, the refusal of a target as it came.
 * `streamable-http.ts` uses it.
 */
import { HeaderList } from "../../../lib/header-list.ts";
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import type { Reply } from "../../exchange/exchange.ts";
import type { CallLifetime } from "../call-lifetime.ts";
import { ERROR_CODES, McpError, printError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import type { McpAnswer } from "../targets/target.ts";

/** Interval of comments on a stream, which proxies in between would else take for dead. */
const COMMENT_MS = 15_000;
/** The head of a response leaves with its first bytes: with a comment, where the first message may be long in coming. */
export const COMMENT: Buffer = Buffer.from(":\n\n");

/** Makes the bytes of an error response that ends a stream; undefined for streams that answer no request. */
type PrintFailure = ((error: unknown) => Buffer) | undefined;

function jsonReply(bytes: Buffer, status = 200): Reply {
  return { status, headers: new HeaderList(["content-type", "application/json"]), body: bytes, upstream: true };
}

/** The answer to notifications and responses. */
export function acceptedReply(): Reply {
  return { status: 202, headers: new HeaderList(), body: null, upstream: true };
}

/** Answers a request with an error. @param id JSON text of the request's id */
export function failureReply(error: McpError, id: string | undefined): Reply {
  return { ...jsonReply(printError(error, id), error.status), upstream: false };
}

/** Prints the error that ends a stream; what is no error of the protocol stays in the log. */
export function printFailure(error: unknown, id: string | undefined): Buffer {
  const known = error instanceof McpError ? error : new McpError(ERROR_CODES.internal, "Internal error");
  return printError(known, id);
}

/** @param allow the methods that are served */
export function methodRefused(allow: string): Reply {
  return { status: 405, headers: new HeaderList(["allow", allow]), body: null, upstream: false };
}

export function answerReply(
  { status, headers, body, only, messages, cancel }: McpAnswer,
  options: Omit<EventBodyOptions, "cancel">,
): Reply {
  if (body !== undefined) return { status, headers, body, upstream: true };
  if (only !== undefined) return jsonReply(options.view(only));
  return eventReply(new EventBody(messages, { ...options, cancel }));
}

export function eventReply(body: BodyStream): Reply {
  const headers = new HeaderList(["content-type", "text/event-stream", "cache-control", "no-cache"]);
  return { status: 200, headers, body, upstream: true };
}

/** Prints a message as an event. Line breaks can only be white space of the JSON, as strings escape them. */
function eventOf(message: Buffer): Buffer {
  const hasBreaks = message.includes(0x0a) || message.includes(0x0d);
  const data = hasBreaks ? Buffer.from(message.toString("utf8").replace(/\r\n|\r|\n/g, "\ndata: ")) : message;
  return Buffer.concat([HEAD, data, TAIL]);
}

const HEAD = Buffer.from("event: message\ndata: ");
const TAIL = Buffer.from("\n\n");

interface EventBodyOptions {
  /** Returns the bytes that the client gets of a message. */
  readonly view: (message: Message) => Buffer;
  readonly printFailure: PrintFailure;
  readonly cancel: () => void;
  /** Set when the messages are read to their end although the client has left. */
  readonly lifetime: CallLifetime | undefined;
  /** Sent before all messages. */
  readonly head?: Buffer;
}

/** A stream of events. It takes the next message only when the client has room for it. */
export class EventBody implements BodyStream {
  readonly #messages: AsyncIterable<Message> | Iterable<Message>;
  readonly #options: EventBodyOptions;
  #room: PromiseWithResolvers<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sink: BodySink | undefined;
  #isRead = false;
  #isOver = false;

  constructor(messages: AsyncIterable<Message> | Iterable<Message>, options: EventBodyOptions) {
    this.#messages = messages;
    this.#options = options;
  }

  read(sink: BodySink): void {
    this.#timer = setInterval(comment, COMMENT_MS, sink);
    this.#timer.unref();
    this.#sink = sink;
    if (this.#options.head !== undefined) sink.data(this.#options.head);
    void this.#write();
  }

  resume(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  destroy(): void {
    if (this.#isOver) return;
    this.#sink = undefined;
    clearInterval(this.#timer);
    if (this.#options.lifetime?.abandon() !== true) {
      this.#end();
      this.#options.cancel();
    } else if (!this.#isRead) void this.#write();
    this.resume();
  }

  async #write(): Promise<void> {
    this.#isRead = true;
    try {
      for await (const message of this.#messages) {
        if (this.#isOver) return;
        if (this.#sink === undefined ? this.#drop(message) : this.#send(message, this.#sink)) continue;
        this.#room = Promise.withResolvers();
        await this.#room.promise;
        if (this.#isOver) return;
      }
    } catch (error) {
      const { printFailure } = this.#options;
      if (!this.#isOver && printFailure !== undefined) this.#sink?.data(eventOf(printFailure(error)));
    }
    if (this.#isOver) return;
    this.#end();
    this.#sink?.end([]);
  }

  /** @returns whether the client has room for more */
  #send(message: Message, sink: BodySink): boolean {
    return sink.data(eventOf(this.#options.view(message)));
  }

  /** Drops what the target says to a client that has left. */
  #drop({ bytes }: Message): boolean {
    if (this.#options.lifetime?.drop(bytes.length) === true) return true;
    this.#end();
    this.#options.cancel();
    this.resume();
    return true;
  }

  #end(): void {
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#options.lifetime?.end();
  }
}

function comment(sink: BodySink): void {
  sink.data(COMMENT);
}
