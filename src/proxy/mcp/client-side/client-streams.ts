/**
 * The event streams of HTTP+SSE (2024-11-05) that clients hold open in one thread. Messages to a client come from any
 * thread of the replica; `legacy-sse.ts` opens the streams.
 */
import { randomBytes } from "node:crypto";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage } from "../message/message.ts";
import type { Seal } from "../session/seal.ts";
import type { SessionOwner, Sessions } from "../session/sessions.ts";
import type { ThreadProtocol } from "../session/threads.ts";
import { MessageQueue } from "../targets/message-queue.ts";
import type { McpAnswer } from "../targets/target.ts";

/** Streams of one thread. */
const MAX_STREAMS = 4_096;
const KEY_BYTES = 16;

/** Where the stream of a client is. */
export interface StreamPlace {
  readonly thread: number;
  readonly key: string;
}

/** Prints the id of a stream, which its client repeats with each message. */
export function sealStreamId(seal: Seal, { thread, key }: StreamPlace): string {
  const bytes = Buffer.alloc(2 + KEY_BYTES);
  bytes.writeUInt16LE(thread);
  bytes.write(key, 2, "hex");
  return seal.seal("stream", bytes);
}

/** @returns undefined for an id that was made up */
export function openStreamId(seal: Seal, id: string): StreamPlace | undefined {
  const bytes = seal.open("stream", id);
  return bytes && { thread: bytes.readUInt16LE(0), key: bytes.toString("hex", 2) };
}

export interface ClientStreamOptions {
  readonly owner: SessionOwner;
  /** Opens what targets say on their own. @throws McpError, ProxyError */
  readonly listen: (session: string) => Promise<McpAnswer>;
  /** Ends the session of a client that has gone. */
  readonly end: (session: string) => void;
}

export class ClientStream {
  readonly key: string = randomBytes(KEY_BYTES).toString("hex");
  readonly owner: SessionOwner;
  /** Messages on their way to the client. */
  readonly queue: MessageQueue;
  /** Id of the session; undefined before `initialize`. */
  session: string | undefined;
  readonly #options: ClientStreamOptions;
  readonly #onClose: (stream: ClientStream) => void;
  #listening: McpAnswer | undefined;
  #isListening = false;
  #isClosed = false;

  constructor(options: ClientStreamOptions, onClose: (stream: ClientStream) => void) {
    this.owner = options.owner;
    this.queue = new MessageQueue(() => this.close());
    this.#options = options;
    this.#onClose = onClose;
  }

  /** Sends what targets say on their own, until one of both sides ends. */
  async listen(): Promise<void> {
    if (this.#isListening || this.session === undefined) return;
    this.#isListening = true;
    try {
      const answer = await this.#options.listen(this.session);
      this.#listening = answer;
      if (this.#isClosed) answer.cancel();
      for await (const message of answer.messages) await this.queue.push(message);
    } catch {
      // Targets need not offer such a stream, and calls work without one; the span of the request says why it failed.
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClose(this);
    this.queue.end();
    this.#listening?.cancel();
    if (this.session !== undefined) this.#options.end(this.session);
  }
}

export class ClientStreams {
  readonly #open = new Map<string, ClientStream>();

  constructor({ threads }: Pick<Sessions, "threads">) {
    threads.serve("findClient", ({ key, owner }) => this.#find(key, owner));
    threads.serve("tellClient", ({ key, bytes }) => this.#tell(key, bytes));
    threads.serve("enterClient", ({ key, session }) => {
      const stream = this.#open.get(key);
      if (stream !== undefined) stream.session = session;
      return stream !== undefined;
    });
    threads.serve("listenForClient", ({ key }) => {
      void this.#open.get(key)?.listen();
      return undefined;
    });
  }

  /** @throws McpError when too many are open */
  open(options: ClientStreamOptions): ClientStream {
    if (this.#open.size >= MAX_STREAMS)
      throw new McpError(ERROR_CODES.internal, "too many streams are open", { status: 503 });
    const stream = new ClientStream(options, ({ key }) => this.#open.delete(key));
    this.#open.set(stream.key, stream);
    return stream;
  }

  /** The stream of another subject or backend does not exist for the caller. */
  #find(key: string, { backend, subject }: SessionOwner): ThreadProtocol["findClient"]["answer"] | undefined {
    const stream = this.#open.get(key);
    if (stream?.owner.backend !== backend || stream.owner.subject !== subject) return undefined;
    return { session: stream.session };
  }

  async #tell(key: string, { buffer, byteOffset, byteLength }: Uint8Array): Promise<boolean> {
    const message = readMessage(Buffer.from(buffer, byteOffset, byteLength));
    if ("kind" in message) await this.#open.get(key)?.queue.push(message);
    return this.#open.has(key);
  }
}

const streams = new WeakMap<Sessions, ClientStreams>();

/** Returns the streams of the thread that has these sessions. */
export function clientStreamsOf(sessions: Sessions): ClientStreams {
  let own = streams.get(sessions);
  if (own === undefined) streams.set(sessions, (own = new ClientStreams(sessions)));
  return own;
}
