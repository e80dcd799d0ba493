/**
 * The event stream of one session with a server of HTTP+SSE (2024-11-05, "HTTP with SSE"): it says where to post, and
 * carries everything that the server says. Responses go to the requests that wait for them, by their ids; what the
 * server says on its own goes to the request that runs, or to the client's own stream. `sse-target.ts` opens it.
 */
import { randomUUID } from "node:crypto";
import type { BodyStream } from "../../exchange/body.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import { EventMessages } from "./event-messages.ts";
import { MessageQueue } from "./message-queue.ts";

/** Requests of one session that may wait for their responses. */
const MAX_PENDING = 256;
/** What the server says while nothing reads it: kept for the client's stream, as that opens after `initialize`. */
const MAX_HELD = 16;
const MAX_HELD_BYTES = 16_384;
/** Longest address to post to; it becomes a part of the session id. */
const MAX_ADDRESS = 1_024;
/** A stream without requests and without a reader is closed. */
const IDLE_MS = 30 * 60_000;

export interface SseConnectionOptions {
  /** Endpoint and path that the stream was asked from. */
  readonly place: string;
  /** URL that the stream was asked from, with the host that the server was told. */
  readonly url: string;
  /** Largest message of the server. */
  readonly limitBytes: number;
  /** Called once, when the stream is over. */
  readonly onClose: (connection: SseConnection) => void;
}

export class SseConnection {
  /** Names the stream in this thread. Addresses do not: a server may give the same one to all its clients. */
  readonly key: string = randomUUID();
  /** Endpoint and path that the stream was asked from: a target that has moved needs another stream. */
  readonly place: string;
  readonly #options: SseConnectionOptions;
  readonly #events: EventMessages;
  readonly #address = Promise.withResolvers<string>();
  readonly #pending = new Map<string, MessageQueue>();
  readonly #idle: NodeJS.Timeout;
  #held: Message[] = [];
  #listener: MessageQueue | undefined;
  #isClosed = false;

  constructor(body: BodyStream, options: SseConnectionOptions) {
    this.place = options.place;
    this.#options = options;
    this.#idle = setTimeout(() => this.#closeWhenIdle(), IDLE_MS).unref();
    // The stream can break before anything waits for the address.
    this.#address.promise.catch(() => undefined);
    this.#events = new EventMessages(body, {
      limitBytes: options.limitBytes,
      onOther: (data, type) => {
        if (type === "endpoint") this.#address.resolve(this.#resolve(data.toString("utf8", 0, MAX_ADDRESS + 1)));
      },
    });
    void this.#read();
  }

  /** Waits for the path and query to post to. @throws McpError when the server names none, or one of another origin */
  address(): Promise<string> {
    return this.#address.promise;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Begins to wait for the response to a request; the queue ends after it. @param id JSON text */
  expect(id: string): MessageQueue {
    if (this.#isClosed) throw cutOff();
    if (this.#pending.has(id) || this.#pending.size >= MAX_PENDING)
      throw new McpError(ERROR_CODES.invalidRequest, "too many requests wait, or one with this id", { status: 400 });
    this.#idle.refresh();
    const queue = new MessageQueue(() => this.#pending.delete(id));
    this.#pending.set(id, queue);
    return queue;
  }

  /** Opens the stream of what the server says on its own. A second one replaces the first. */
  listen(): MessageQueue {
    this.#listener?.end();
    const queue = new MessageQueue(() => {
      if (this.#listener === queue) this.#listener = undefined;
    });
    if (this.#isClosed) queue.end();
    else this.#listener = queue;
    for (const message of this.#held) void queue.push(message);
    this.#held = [];
    return queue;
  }

  /** Closes the stream, which ends the session at the server. */
  close(error?: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#idle);
    void this.#events.return();
    this.#address.reject(error ?? cutOff());
    const broken = error instanceof McpError ? error : cutOff();
    for (const queue of this.#pending.values()) queue.end(broken);
    this.#pending.clear();
    this.#listener?.end();
    this.#listener = undefined;
    this.#options.onClose(this);
  }

  async #read(): Promise<void> {
    try {
      for await (const message of this.#events) await this.#deliver(message);
      this.close();
    } catch (error) {
      this.close(error);
    }
  }

  async #deliver(message: Message): Promise<void> {
    const { kind, id = "" } = message;
    if (kind === "result" || kind === "error") {
      const queue = this.#pending.get(id);
      // The server answers what was not asked, or once more.
      if (queue === undefined) return;
      this.#pending.delete(id);
      const hasRoom = queue.push(message);
      queue.end();
      return hasRoom;
    }
    const receiver = this.#receiver();
    if (receiver !== undefined) return receiver.push(message);
    if (this.#held.length < MAX_HELD && message.bytes.length <= MAX_HELD_BYTES) this.#held.push(message);
  }

  /** Messages do not say which request they belong to: with a single one there is no doubt. */
  #receiver(): MessageQueue | undefined {
    const [oldest] = this.#pending.values();
    return this.#pending.size === 1 ? oldest : (this.#listener ?? oldest);
  }

  #resolve(text: string): string {
    const base = new URL(this.#options.url);
    const url = text.length <= MAX_ADDRESS ? URL.parse(text, base.href) : null;
    if (url !== null && url.origin === base.origin) return `${url.pathname}${url.search}`;
    throw new McpError(ERROR_CODES.internal, "the server names an address that cannot be used", { status: 500 });
  }

  #closeWhenIdle(): void {
    if (this.#pending.size === 0 && this.#listener === undefined) this.close();
    else this.#idle.refresh();
  }
}

function cutOff(): McpError {
  return new McpError(ERROR_CODES.internal, "the server ended its stream without an answer", { status: 500 });
}
