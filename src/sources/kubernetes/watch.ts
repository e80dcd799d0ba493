/**
 * Keeps one kind up to date: list, then watch from the version of the list, for ever. Bookmarks move the version along,
 * a version that is too old leads to a new list, a broken connection to a new watch from where the old one ended.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createBackoff, type Backoff } from "../../lib/backoff.ts";
import { messageOf, SourceError } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { apiErrorOf, isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";
import type { KindStore } from "./kind-store.ts";
import { collectionPath, metadataOnly, selectors, type WatchedKind } from "./kinds.ts";
import { readLines } from "./lines.ts";
import { listKind } from "./list.ts";
import { normalizeObject } from "./normalize.ts";

export interface WatchTimes {
  /** First and longest wait after a failure. */
  readonly retryMs: { readonly initial: number; readonly max: number };
  /** How long the server shall keep one watch open; each is a little different, so that not all end at once. */
  readonly watchSeconds: number;
  /** Silence after which a connection counts as dead. Bookmarks come every minute. */
  readonly silenceMs: number;
}

export const WATCH_TIMES: WatchTimes = {
  retryMs: { initial: 200, max: 10_000 },
  watchSeconds: 300,
  silenceMs: 180_000,
};

/** "synced": the store holds the state. "missing": no version of the kind is served; the store is empty. */
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
  /** Resolves at a sign that the kind may have appeared (true), or after `atMostMs` (false). */
  appeared(kind: WatchedKind, atMostMs: number): Promise<boolean>;
}

/** Runs until the signal aborts. Never throws: whatever fails is reported, logged and tried again. */
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
        // A definition is announced a moment before its kind is served, so a sign starts quick tries anew.
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

/** Lists once and watches until the version is too old. @throws when the list fails, or the kind is gone */
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
      // A server that closes at once without a word would otherwise be asked in a tight loop.
      if (resourceVersion === began) await pause(backoff.next(), signal);
    } catch (error) {
      if (signal.aborted) return;
      if (isStatus(error, 410)) {
        log.debug("the watched version is too old, listing again", { kind: kind.kind });
        // Waits as well: a server that never remembers enough must not be listed in a tight loop.
        await pause(backoff.next(), signal);
        return;
      }
      if (isStatus(error, 404)) throw error;
      log.info("a watch broke off and goes on", { kind: kind.kind, error: messageOf(error) });
      await pause(backoff.next(), signal);
    }
  }
}

/** The first preferred version that the server knows. @throws ApiError 404 when it knows none of them */
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

/** One watch connection. Puts each event into the store and yields the version it leads to. */
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
      const { type, object } = JSON.parse(line) as WatchEvent; // an unknown type is refused below
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
