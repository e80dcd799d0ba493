/**
 * The event streams to servers of HTTP+SSE that one thread holds open. They outlive changes of the configuration, and
 * their number is bounded: the stream used least recently gives way, and its session is entered anew when it is used
 * again.
 */
import type { Sessions } from "../session/sessions.ts";
import type { SseConnection } from "./sse-connection.ts";

/** Streams of one thread. */
const MAX_OPEN = 4_096;

export class SseConnections {
  readonly #open = new Map<string, SseConnection>();

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

  get(key: string): SseConnection | undefined {
    const connection = this.#open.get(key);
    if (connection === undefined) return undefined;
    this.#open.delete(key);
    this.#open.set(key, connection);
    return connection;
  }
}

const connections = new WeakMap<Sessions, SseConnections>();

/** Returns the streams of the thread that has these sessions. */
export function connectionsOf(sessions: Sessions): SseConnections {
  let own = connections.get(sessions);
  if (own === undefined) connections.set(sessions, (own = new SseConnections()));
  return own;
}
