/**
 * The MCP sessions of one thread. A session is in its sealed id; what is kept here is a bounded cache of sessions that
 * were opened already, and what the replica shares in memory: the sessions that clients ended, and the ids that targets
 * issued when a session was healed. There is one for each thread; backends come and go, sessions stay.
 */
import { hash } from "node:crypto";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import {
  decodeRecord,
  digestBackend,
  digestTarget,
  encodeRecord,
  type SessionRecord,
  type TargetRecord,
} from "./record.ts";
import type { Seal } from "./seal.ts";
import type { ClientInfo, Session, TargetSession } from "./session.ts";
import type { SharedRecords } from "./shared-records.ts";
import { Threads } from "./threads.ts";

/** Sessions that a thread keeps open; a session that is not among them is opened again from its id. */
const MAX_KEPT = 8_192;
/** A session without traffic for so long is dropped from the cache. */
const IDLE_MS = 30 * 60_000;
/** Within this time a session that is used again keeps its place in the cache: moving it costs more than finding it. */
const FRESH_MS = 1_000;
/** Backends whose digest is remembered; all are forgotten when there are more. */
const MAX_BACKENDS = 4_096;
/** Ids that are older are refused. */
const MAX_AGE_MS = 24 * 3_600_000;
/** Longest id; proxies in between refuse longer header fields. */
const MAX_ID_BYTES = 6_144;
/** Bytes of the name and version of a client that are told to targets entered later. */
const MAX_NAME_BYTES = 128;

/** Memory that the threads of a replica share. */
export interface SharedSessions {
  /** Sessions that clients ended, which no target may heal. */
  readonly ended: SharedRecords;
  /** What targets issued anew, by session and target. */
  readonly healed: SharedRecords;
}

/** Who asks for a session, and of what. */
export interface SessionOwner {
  /** Key of the backend. */
  readonly backend: string;
  /** Digest of the user; undefined when nothing authenticated the request. */
  readonly subject: string | undefined;
}

interface Kept {
  readonly session: LiveSession;
  readonly usedAtMs: number;
}

export class Sessions {
  /** Seals cursors as well. */
  readonly seal: Seal;
  /** Reaches the thread that holds a stream. */
  readonly threads: Threads;
  readonly #shared: SharedSessions;
  readonly #nowMs: () => number;
  readonly #kept = new Map<string, Kept>();
  /** Digests by key of the backend. */
  readonly #backends = new Map<string, string>();

  /** @param nowMs milliseconds since 1970 */
  constructor(seal: Seal, shared: SharedSessions, nowMs: () => number = Date.now, threads: Threads = new Threads()) {
    this.seal = seal;
    this.threads = threads;
    this.#shared = shared;
    this.#nowMs = nowMs;
  }

  /** Number of sessions that are kept open. */
  get keptCount(): number {
    return this.#kept.size;
  }

  /** Begins a session that has no id until `register`. */
  begin(client: ClientInfo, owner: SessionOwner): LiveSession {
    const record: SessionRecord = {
      client: { ...client, name: shortened(client.name), clientVersion: shortened(client.clientVersion) },
      subject: owner.subject,
      backend: this.#digestOf(owner.backend),
      createdAtS: Math.floor(this.#nowMs() / 1000),
      targets: new Map(),
    };
    return new LiveSession(record, undefined, this.#shared, this.#nowMs);
  }

  /** Seals a session that all its targets have entered. @throws McpError when it does not fit into an id */
  register(begun: LiveSession, version: string): LiveSession {
    const record = begun.toRecord(version);
    const id = this.seal.seal("session", encodeRecord(record));
    if (id.length > MAX_ID_BYTES)
      throw new McpError(ERROR_CODES.internal, "the session is too large for an id", {
        status: 503,
        detail: `${id.length} bytes`,
      });
    const session = new LiveSession(record, id, this.#shared, this.#nowMs);
    this.#keep(id, session);
    return session;
  }

  /** Opens the session of an id. @returns undefined for one that is unknown, forged, ended, or someone else's */
  resume(id: string, owner: SessionOwner): LiveSession | undefined {
    const session = this.#kept.get(id)?.session ?? this.#open(id);
    if (session === undefined) return undefined;
    const { record } = session;
    const isOwn = record.backend === this.#digestOf(owner.backend) && record.subject === owner.subject;
    const isOld = this.#nowMs() - record.createdAtS * 1000 > MAX_AGE_MS;
    if (!isOwn || isOld || session.isEnded) return undefined;
    this.#keep(id, session);
    return session;
  }

  /** Ends a session for all threads of the replica. */
  end(session: LiveSession): void {
    if (session.id === undefined) return;
    this.#kept.delete(session.id);
    session.markEnded();
  }

  #open(id: string): LiveSession | undefined {
    if (id.length > MAX_ID_BYTES) return undefined;
    const bytes = this.seal.open("session", id);
    const record = bytes === undefined ? undefined : decodeRecord(bytes);
    return record === undefined ? undefined : new LiveSession(record, id, this.#shared, this.#nowMs);
  }

  #digestOf(backend: string): string {
    let digest = this.#backends.get(backend);
    if (digest !== undefined) return digest;
    if (this.#backends.size >= MAX_BACKENDS) this.#backends.clear();
    this.#backends.set(backend, (digest = digestBackend(backend)));
    return digest;
  }

  /** A Map iterates in order of insertion, so the session used least recently comes first. */
  #keep(id: string, session: LiveSession): void {
    const usedAtMs = this.#nowMs();
    const before = this.#kept.get(id);
    if (before !== undefined && usedAtMs - before.usedAtMs < FRESH_MS) return;
    this.#kept.delete(id);
    this.#kept.set(id, { session, usedAtMs });
    for (const [oldest, kept] of this.#kept) {
      if (this.#kept.size <= MAX_KEPT && usedAtMs - kept.usedAtMs < IDLE_MS) return;
      this.#kept.delete(oldest);
    }
  }
}

export class LiveSession implements Session {
  readonly record: SessionRecord;
  readonly id: string | undefined;
  /** A digest of the id, which is a credential itself; for logs and shared memory. */
  readonly digest: string;
  logLevel: string | undefined = undefined;
  readonly subscriptions: Map<string, Set<string>> = new Map();
  readonly #shared: SharedSessions;
  readonly #nowMs: () => number;
  readonly #targets = new Map<string, TargetSession>();

  constructor(record: SessionRecord, id: string | undefined, shared: SharedSessions, nowMs: () => number) {
    this.record = record;
    this.id = id;
    this.digest = id === undefined ? "" : hash("sha256", id).slice(0, 32);
    this.#shared = shared;
    this.#nowMs = nowMs;
  }

  get client(): ClientInfo {
    return this.record.client;
  }

  get isEnded(): boolean {
    return this.#shared.ended.get(this.digest, this.#nowMs() - MAX_AGE_MS) !== undefined;
  }

  markEnded(): void {
    this.#shared.ended.put(this.digest, Buffer.alloc(0), this.#nowMs());
  }

  target(name: string): TargetSession {
    let own = this.#targets.get(name);
    if (own === undefined) {
      const known = this.#healed(name) ?? this.record.targets.get(digestTarget(name));
      own = {
        entered: known !== undefined,
        isLost: false,
        id: known?.id,
        endpoint: known?.endpoint,
        entering: undefined,
      };
      this.#targets.set(name, own);
    }
    return own;
  }

  refresh(name: string): boolean {
    const own = this.target(name);
    const healed = this.#healed(name);
    if (healed === undefined || healed.id === own.id) return false;
    Object.assign(own, { ...healed, entered: true, isLost: false });
    return true;
  }

  publish(name: string, lostId: string | undefined): boolean {
    if (this.id === undefined) return true;
    const { id = "", endpoint = "" } = this.target(name);
    const sinceMs = this.#nowMs() - MAX_AGE_MS;
    const isOld = (present: Buffer, timeMs: number): boolean => timeMs < sinceMs || decodeHealed(present).id === lostId;
    const isFirst = this.#shared.healed.put(
      this.#digestOf(name),
      Buffer.from(`${id}\n${endpoint}`),
      this.#nowMs(),
      isOld,
    );
    return isFirst || !this.refresh(name);
  }

  #healed(name: string): TargetRecord | undefined {
    if (this.id === undefined) return undefined;
    const bytes = this.#shared.healed.get(this.#digestOf(name), this.#nowMs() - MAX_AGE_MS);
    return bytes === undefined ? undefined : decodeHealed(bytes);
  }

  #digestOf(name: string): string {
    return hash("sha256", `${this.digest} ${name}`).slice(0, 32);
  }

  /** @param version the one that was negotiated */
  toRecord(version: string): SessionRecord {
    const targets = new Map<string, TargetRecord>();
    for (const [name, { entered, id, endpoint }] of this.#targets)
      if (entered) targets.set(digestTarget(name), { id, endpoint });
    return { ...this.record, client: { ...this.client, version }, targets };
  }
}

function decodeHealed(bytes: Buffer): TargetRecord {
  const [id, endpoint] = bytes.toString().split("\n");
  return { id: id || undefined, endpoint: endpoint || undefined };
}

/** Cuts a text to the bytes that a session keeps of it, between characters. */
function shortened(text: string): string {
  if (Buffer.byteLength(text) <= MAX_NAME_BYTES) return text;
  return Buffer.from(text)
    .toString("utf8", 0, MAX_NAME_BYTES)
    .replace(/\ufffd$/, "");
}

/** Makes the session of clients that have none: every request stands for itself. */
export function withoutSession(client: ClientInfo, isEntered: boolean): Session {
  const targets = new Map<string, TargetSession>();
  return {
    id: undefined,
    client,
    target(name) {
      let own = targets.get(name);
      if (own === undefined)
        targets.set(
          name,
          (own = { entered: isEntered, isLost: false, id: undefined, endpoint: undefined, entering: undefined }),
        );
      return own;
    },
    logLevel: undefined,
    subscriptions: new Map(),
    refresh: () => false,
    publish: () => true,
  };
}
