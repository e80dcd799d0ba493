/**
 * The event streams to servers of HTTP+SSE that one thread holds open, and those of the replica's other threads. A
 * session has one stream: a server that asks its client waits for the answer there, whichever thread that arrives at. The
 * streams outlive changes of the configuration, and their number is bounded: the stream used least recently gives way,
 * and its session is entered anew when it is used again.
 */
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage } from "../message/message.ts";
import type { Sessions } from "../session/sessions.ts";
import type { TargetMessageAnswer, TargetReader, Threads } from "../session/threads.ts";
import { MessageQueue } from "./message-queue.ts";
import type { SseConnection } from "./sse-connection.ts";

/** Streams of one thread. */
const MAX_OPEN = 4_096;
/** A reader in another thread that asks for nothing has gone, and must not hold up the stream. */
const READER_IDLE_MS = 5 * 60_000;

/** The stream of a session, in whatever thread. */
export interface SseStream {
  /** Begins to wait for the response to a request. @param id JSON text @throws McpError */
  expect(id: string): Promise<MessageQueue> | MessageQueue;
  /** Begins to read what the server says on its own. @throws McpError */
  listen(): Promise<MessageQueue> | MessageQueue;
  close(): void;
}

/** What a reader in another thread reads. */
interface Reading {
  readonly queue: MessageQueue;
  readonly messages: AsyncIterator<{ readonly bytes: Buffer }>;
  readonly idle: NodeJS.Timeout;
}

export class SseConnections {
  readonly #threads: Threads;
  readonly #open = new Map<string, SseConnection>();
  readonly #readings = new Map<number, Reading>();
  #lastReader = 0;

  constructor(threads: Threads) {
    this.#threads = threads;
    threads.serve("findTarget", ({ key, place }) => this.#own(key, place) !== undefined);
    threads.serve("readTarget", ({ key, place, id }) => this.#beginReading(key, place, id));
    threads.serve("nextOfTarget", (reader) => this.#next(reader));
    threads.serve("leaveTarget", (reader) => this.#leave(reader));
    threads.serve("closeTarget", (key) => {
      this.#open.get(key)?.close();
      return undefined;
    });
  }

  /** Returns the name of a stream, by which every thread finds it. */
  nameOf({ key }: SseConnection): string {
    return `${this.#threads.own}.${key}`;
  }

  /** A Map iterates in order of insertion, so the stream used least recently comes first. */
  add(connection: SseConnection): void {
    if (connection.isClosed) return;
    this.#open.set(connection.key, connection);
    const [oldest] = this.#open.values();
    if (this.#open.size > MAX_OPEN) oldest?.close();
  }

  remove({ key }: SseConnection): void {
    this.#open.delete(key);
  }

  /** @param place that the stream must be from: one from a place that the target has left is closed */
  async find(name: string, place: string): Promise<SseStream | undefined> {
    const at = name.indexOf(".");
    const thread = Number(name.slice(0, at));
    const key = name.slice(at + 1);
    if (thread === this.#threads.own) return this.#own(key, place);
    const isOpen = await this.#threads.ask(thread, "findTarget", { key, place });
    return isOpen === true ? new RemoteStream(this.#threads, thread, { key, place }) : undefined;
  }

  #own(key: string, place: string): SseConnection | undefined {
    const connection = this.#open.get(key);
    if (connection === undefined) return undefined;
    if (connection.place !== place) {
      connection.close();
      return undefined;
    }
    this.#open.delete(key);
    this.#open.set(key, connection);
    return connection;
  }

  /** @throws McpError which the other thread gets as a refusal */
  #beginReading(key: string, place: string, id: string | undefined): TargetReader {
    const connection = this.#own(key, place);
    if (connection === undefined) return { reader: undefined, refusal: undefined };
    try {
      const queue = id === undefined ? connection.listen() : connection.expect(id);
      const reader = ++this.#lastReader;
      const idle = setTimeout(() => this.#leave(reader), READER_IDLE_MS).unref();
      this.#readings.set(reader, { queue, messages: queue[Symbol.asyncIterator](), idle });
      return { reader, refusal: undefined };
    } catch (error) {
      return { reader: undefined, refusal: error instanceof Error ? error.message : String(error) };
    }
  }

  async #next(reader: number): Promise<TargetMessageAnswer> {
    const reading = this.#readings.get(reader);
    if (reading === undefined) return { bytes: undefined, failure: undefined };
    reading.idle.refresh();
    try {
      const { done, value } = await reading.messages.next();
      if (done !== true) return { bytes: value.bytes, failure: undefined };
      this.#leave(reader);
      return { bytes: undefined, failure: undefined };
    } catch (error) {
      this.#leave(reader);
      return { bytes: undefined, failure: error instanceof Error ? error.message : String(error) };
    }
  }

  #leave(reader: number): undefined {
    const reading = this.#readings.get(reader);
    this.#readings.delete(reader);
    clearTimeout(reading?.idle);
    reading?.queue.cancel();
  }
}

/** A stream that another thread holds: its messages are fetched one by one. */
class RemoteStream implements SseStream {
  readonly #threads: Threads;
  readonly #thread: number;
  readonly #target: { readonly key: string; readonly place: string };

  constructor(threads: Threads, thread: number, target: { readonly key: string; readonly place: string }) {
    this.#threads = threads;
    this.#thread = thread;
    this.#target = target;
  }

  expect(id: string): Promise<MessageQueue> {
    return this.#read(id);
  }

  listen(): Promise<MessageQueue> {
    return this.#read(undefined);
  }

  close(): void {
    void this.#threads.ask(this.#thread, "closeTarget", this.#target.key);
  }

  async #read(id: string | undefined): Promise<MessageQueue> {
    const begun = await this.#threads.ask(this.#thread, "readTarget", { ...this.#target, id });
    const { reader, refusal } = begun ?? { reader: undefined, refusal: undefined };
    if (reader === undefined)
      throw new McpError(ERROR_CODES.internal, refusal ?? "the server ended its stream without an answer", {
        status: refusal === undefined ? 500 : 400,
      });
    const queue = new MessageQueue(() => void this.#threads.ask(this.#thread, "leaveTarget", reader));
    void this.#fetch(reader, queue);
    return queue;
  }

  async #fetch(reader: number, queue: MessageQueue): Promise<void> {
    while (!queue.isOver) {
      const next = await this.#threads.ask(this.#thread, "nextOfTarget", reader);
      const message = next?.bytes === undefined ? undefined : readMessage(Buffer.from(next.bytes));
      if (message === undefined || "code" in message) {
        const failure = next === undefined ? "the server ended its stream without an answer" : next.failure;
        queue.end(failure === undefined ? undefined : new McpError(ERROR_CODES.internal, failure, { status: 500 }));
        return;
      }
      await queue.push(message);
    }
  }
}

const connections = new WeakMap<Sessions, SseConnections>();

/** Returns the streams of the thread that has these sessions. */
export function connectionsOf(sessions: Sessions): SseConnections {
  let own = connections.get(sessions);
  if (own === undefined) connections.set(sessions, (own = new SseConnections(sessions.threads)));
  return own;
}
