/**
 * Keeps the store of one kind up to date, for the Kubernetes source: the list-watch loop of Kubernetes' Reflector. It
 * lists the kind, then watches from the resourceVersion of the list, and repeats until it is stopped:
 *
 *   list ──▶ store.replace ──▶ watch ──event, bookmark──▶ watch (resourceVersion advances)
 *    ▲ ▲                        │ │ └─connection ends, silence──▶ backoff ──▶ watch from the last resourceVersion
 *    │ └── backoff ◀── 410 Gone ┘ │
 *    └── definition appears or backoff ◀── 404: kind is not served, the store is emptied
 *
 * Bookmarks advance the resourceVersion of quiet kinds. Without them the version would grow too old and every reconnect
 * would need a new list.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createBackoff, type Backoff } from "../../lib/time/backoff.ts";
import { messageOf, SourceError } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { apiErrorOf, isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";
import type { KindStore } from "./kind-store.ts";
import { collectionPath, metadataOnly, selectors, type WatchedKind } from "./kinds.ts";
import { listKind } from "./list.ts";
import { normalizeObject } from "./normalize.ts";
import type { Readable } from "node:stream";

export interface WatchTimes {
  /** First and longest wait after a failure. */
  readonly retryMs: { readonly initial: number; readonly max: number };
  /**
   * How long the server should keep a watch open. A random factor from 1 to 2 is applied, so that not all watches end
   * at once.
   */
  readonly watchSeconds: number;
  /** A connection without any line for this long counts as dead. Bookmarks come every minute. */
  readonly silenceMs: number;
}

export const WATCH_TIMES: WatchTimes = {
  retryMs: { initial: 200, max: 10_000 },
  watchSeconds: 300,
  silenceMs: 180_000,
};

/** "synced": the store holds the state. "missing": the server serves no version of the kind, and the store is empty. */
export type KindState =
  | { readonly type: "synced" }
  | { readonly type: "missing" }
  | { readonly type: "failing"; readonly message: string };

export interface KindWatch {
  readonly client: KubernetesClient;
  readonly kind: WatchedKind;
  readonly store: KindStore;
  readonly log: Logger;
  readonly times: WatchTimes;
  readonly signal: AbortSignal;
  /** Called at every change of state, and again with each further failure. */
  report(state: KindState): void;
  /** Resolves with true when the kind may have appeared, or with false after `atMostMs`. */
  appeared(kind: WatchedKind, atMostMs: number): Promise<boolean>;
}

/** Runs until the signal aborts. It never throws: every failure is reported, logged and retried. */
export async function watchKind(watch: KindWatch): Promise<void> {
  const { kind, log, times, signal } = watch;
  const backoff = createBackoff({ initialMs: times.retryMs.initial, maxMs: times.retryMs.max });
  while (!signal.aborted) {
    try {
      await listAndWatch(watch, backoff);
    } catch (error) {
      if (signal.aborted) return;
      if (isStatus(error, 404)) {
        watch.store.replace([]);
        watch.report({ type: "missing" });
        // A definition is announced a moment before its kind is served, so its announcement restarts the quick retries.
        if (await watch.appeared(kind, backoff.next())) backoff.reset();
        continue;
      }
      const message = messageOf(error);
      watch.report({ type: "failing", message });
      log.warn("a kind cannot be listed", { kind: kind.kind, error: message });
      await pause(backoff.next(), signal);
    }
  }
}

/**
 * Lists once and watches until the resourceVersion is too old.
 * @throws when the list fails, or when the kind is no longer served
 */
async function listAndWatch(watch: KindWatch, backoff: Backoff): Promise<void> {
  const { client, kind, store, signal, log } = watch;
  const version = await servedVersion(watch);
  const listing = await listKind(client, kind, version, signal);
  store.replace(listing.objects);
  watch.report({ type: "synced" });
  let { resourceVersion } = listing;
  while (!signal.aborted) {
    const began = resourceVersion;
    try {
      for await (const seen of events(watch, version, resourceVersion)) {
        resourceVersion = seen;
        backoff.reset();
      }
      // Pause when the server closed the connection without an event; otherwise this would be a tight loop.
      if (resourceVersion === began) await pause(backoff.next(), signal);
    } catch (error) {
      if (signal.aborted) return;
      if (isStatus(error, 410)) {
        log.debug("the watched version is too old, listing again", { kind: kind.kind });
        // Pause here too: a server whose history is always too short must not be listed in a tight loop.
        await pause(backoff.next(), signal);
        return;
      }
      if (isStatus(error, 404)) throw error;
      log.info("a watch broke off and goes on", { kind: kind.kind, error: messageOf(error) });
      await pause(backoff.next(), signal);
    }
  }
}

/** Returns the first preferred version that the server serves, or the first one when it serves none of them. */
async function servedVersion({ client, kind, signal }: KindWatch): Promise<string> {
  const [first, ...others] = kind.versions;
  if (others.length === 0) return first;
  for (const version of kind.versions) {
    try {
      await client.request({ method: "GET", path: collectionPath(kind, version), query: { limit: "1" }, signal });
      return version;
    } catch (error) {
      if (!isStatus(error, 404)) throw error;
    }
  }
  return first;
}

/** Opens one watch connection, stores each event and yields the resourceVersion that it leads to. */
async function* events(watch: KindWatch, version: string, resourceVersion: string): AsyncGenerator<string, void, void> {
  const { client, kind, store, times } = watch;
  const path = collectionPath(kind, version);
  const silence = new AbortController();
  const signal = AbortSignal.any([watch.signal, silence.signal]);
  const seconds = Math.round(times.watchSeconds * (1 + Math.random()));
  const query: Record<string, string> = {
    watch: "true",
    allowWatchBookmarks: "true",
    resourceVersion,
    timeoutSeconds: String(seconds),
    ...selectors(kind),
  };
  const stream = await client.stream({
    method: "GET",
    path,
    query,
    signal,
    ...metadataOnly(kind, "PartialObjectMetadata"),
  });
  const timer = setTimeout(() => silence.abort(), times.silenceMs);
  try {
    for await (const line of readLines(stream)) {
      timer.refresh();
      const { type, object } = JSON.parse(line) as WatchEvent; // unknown types are refused below
      if (type === "ERROR") throw apiErrorOf(object, `WATCH ${path}`, 500);
      if (type !== "BOOKMARK") {
        const change = normalizeObject(object, kind, version);
        if (type === "DELETED") store.remove(change);
        else if (type === "ADDED" || type === "MODIFIED") store.set(change);
        else throw new SourceError(`WATCH ${path}: an event of the unknown type ${JSON.stringify(type)}`);
      }
      const at = (object as { metadata?: { resourceVersion?: unknown } } | undefined)?.metadata?.resourceVersion;
      if (typeof at !== "string") throw new SourceError(`WATCH ${path}: an event without a version`);
      yield at;
    }
  } finally {
    clearTimeout(timer);
    stream.destroy();
  }
}

interface WatchEvent {
  readonly type?: unknown;
  readonly object?: unknown;
}

/** Waits, or returns at once when the signal aborts. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** Kubernetes objects stay under 2 MiB, so a longer line is not an event. */
const MAX_LINE_CHARACTERS = 16 * 1024 * 1024;

/**
 * Splits a stream of newline-delimited JSON into lines.
 * @throws SourceError when the stream breaks off inside a line or a line exceeds the limit
 */
async function* readLines(stream: Readable): AsyncGenerator<string, void, void> {
  stream.setEncoding("utf8");
  let parts: string[] = [];
  let length = 0;
  for await (const chunk of stream) {
    const text = chunk as string; // setEncoding makes every chunk a string
    let from = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
      parts.push(text.slice(from, at));
      const line = parts.join("");
      parts = [];
      length = 0;
      from = at + 1;
      if (line.trim() !== "") yield line;
    }
    if (from === text.length) continue;
    parts.push(text.slice(from));
    length += text.length - from;
    if (length > MAX_LINE_CHARACTERS) throw new SourceError("an event of the watch is longer than any object may be");
  }
  if (parts.join("").trim() !== "") throw new SourceError("the watch broke off in the middle of an event");
}
