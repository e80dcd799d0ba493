/**
 * State that counts once per replica rather than per thread: rate limit buckets, endpoint health, connection ids, MCP
 * sessions that were ended or healed. The
 * main thread allocates the shared memory, and every worker opens it.
 */
import { randomUUID } from "node:crypto";
import { allocateSlots, SharedTable } from "../lib/shared-table.ts";
import type { SharedSessions } from "./mcp/session/sessions.ts";
import { allocateRecords, SharedRecords } from "./mcp/session/shared-records.ts";
import { allocateIds, Ids } from "./observability/ids.ts";

/** Plain data that can be passed to another thread. */
export interface SharedBuffers {
  readonly endpoints: SharedArrayBuffer;
  readonly buckets: SharedArrayBuffer;
  readonly ids: SharedArrayBuffer;
  readonly beats: SharedArrayBuffer;
  readonly endedSessions: SharedArrayBuffer;
  readonly healedSessions: SharedArrayBuffer;
  /** Random name of the replica in CDN-Loop (RFC 8586); all of its threads count as one hop. */
  readonly replica: string;
}

/** Holds two tables, because clients choose the keys of rate limits and must not crowd out endpoints. */
export interface SharedState {
  readonly endpoints: SharedTable;
  readonly buckets: SharedTable;
  readonly ids: Ids;
  readonly sessions: SharedSessions;
  readonly replica: string;
}

/** Numbers of slots. They reserve address space; memory is used only for slots that were ever claimed. */
const ENDPOINTS = 65_536;
const BUCKETS = 131_072;
const ENDED_SESSIONS = 65_536;
const HEALED_SESSIONS = 8_192;
/** Bytes of the session id and the endpoint of a target. */
const HEALED_BYTES = 480;

export function allocateShared(threads: number): SharedBuffers {
  return {
    endpoints: allocateSlots(ENDPOINTS, threads),
    buckets: allocateSlots(BUCKETS, threads),
    ids: allocateIds(),
    beats: allocateBeats(threads),
    endedSessions: allocateRecords(ENDED_SESSIONS, 0),
    healedSessions: allocateRecords(HEALED_SESSIONS, HEALED_BYTES),
    replica: randomUUID(),
  };
}

/** @param thread number of this thread, unique among the running ones */
export function openShared(buffers: SharedBuffers, thread: number): SharedState {
  const { endpoints, buckets, ids, endedSessions, healedSessions, replica } = buffers;
  return {
    endpoints: new SharedTable(endpoints, thread),
    buckets: new SharedTable(buckets, thread),
    ids: new Ids(ids),
    sessions: {
      ended: new SharedRecords(endedSessions, thread),
      healed: new SharedRecords(healedSessions, thread),
    },
    replica,
  };
}

/** Allocates the heartbeats that Watchdog compares, one per thread. */
export function allocateBeats(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT);
}
