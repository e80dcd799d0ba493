/** What limits and health must know of the whole replica: memory that the main thread makes and every worker opens. */
import { randomUUID } from "node:crypto";
import { allocateSlots, SharedTable } from "../../lib/shared-table.ts";
import { allocateIds, Ids } from "../observability/ids.ts";
import { allocateBeats } from "./watchdog.ts";

/** Can be handed to another thread. */
export interface SharedBuffers {
  readonly endpoints: SharedArrayBuffer;
  readonly buckets: SharedArrayBuffer;
  readonly ids: SharedArrayBuffer;
  readonly beats: SharedArrayBuffer;
  /** Random name of the replica: all of its threads are one station of a request. */
  readonly replica: string;
}

/** Two tables, because clients choose the keys of rate limits and must not crowd out endpoints. */
export interface SharedState {
  readonly endpoints: SharedTable;
  readonly buckets: SharedTable;
  readonly ids: Ids;
  readonly replica: string;
}

/** Address space; memory is used only for slots that were ever claimed. */
const ENDPOINTS = 65_536;
const BUCKETS = 131_072;

export function allocateShared(threads: number): SharedBuffers {
  return {
    endpoints: allocateSlots(ENDPOINTS, threads),
    buckets: allocateSlots(BUCKETS, threads),
    ids: allocateIds(),
    beats: allocateBeats(threads),
    replica: randomUUID(),
  };
}

/** @param thread number of this thread, which no other living one has */
export function openShared({ endpoints, buckets, ids, replica }: SharedBuffers, thread: number): SharedState {
  return {
    endpoints: new SharedTable(endpoints, thread),
    buckets: new SharedTable(buckets, thread),
    ids: new Ids(ids),
    replica,
  };
}
