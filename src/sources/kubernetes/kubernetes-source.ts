/**
 * The source that reads a cluster; the controller starts it. It lists and watches the given kinds and delivers one
 * batch with the full state once every kind has been listed, then batches of changes. status-client.ts and
 * object-client.ts write.
 */
import type { KubeObject, ObjectId } from "../../api/object.ts";
import { objectId, objectKey } from "../../api/object.ts";
import { SourceError } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { ObjectEvent, Source, SourceDiagnostic, SourceSink } from "../source.ts";
import type { KubernetesClient } from "./client.ts";
import { createAppearances, DEFINITIONS, type Appearances } from "./definitions.ts";
import { createKindStore, type KindStore } from "./kind-store.ts";
import type { WatchedKind } from "./kinds.ts";
import { WATCH_TIMES, watchKind, type KindState, type WatchTimes } from "./watch.ts";

/** Changes that arrive within this time form one batch; it is short enough not to delay a single change noticeably. */
const BATCH_MS = 5;

export interface KubernetesSource extends Source {
  /** Returns an object as last seen, without asking the server. */
  current(id: ObjectId): KubeObject | undefined;
  /** Returns how many objects of each kind were read. */
  counts(): Readonly<Record<string, number>>;
}

export interface KubernetesSourceOptions {
  readonly client: KubernetesClient;
  readonly kinds: readonly WatchedKind[];
  readonly log: Logger;
  readonly times?: WatchTimes;
}

export function createKubernetesSource(options: KubernetesSourceOptions): KubernetesSource {
  const { client, kinds, log, times = WATCH_TIMES } = options;
  const stopping = new AbortController();
  const appearances = createAppearances();
  const stores = new Map<string, KindStore>();
  let running: Promise<unknown> = Promise.resolve();

  const watch = (kind: WatchedKind, store: KindStore, report: (state: KindState) => void): Promise<void> => {
    const { signal } = stopping;
    const appeared: Appearances["wait"] = (missing, atMostMs) => appearances.wait(missing, atMostMs);
    return watchKind({ client, kind, store, log, times, signal, report, appeared });
  };

  return {
    start(sink) {
      const batch = createBatch(sink);
      const diagnostics = createDiagnostics(sink);
      const unseen = new Set(kinds);
      return new Promise((resolve, reject) => {
        const settle = (kind: WatchedKind): void => {
          if (!unseen.delete(kind) || unseen.size > 0) return;
          batch.open();
          resolve();
        };
        stopping.signal.addEventListener("abort", () => {
          batch.close();
          reject(new SourceError("stopped before the cluster had been read"));
        });
        const watches = kinds.map((kind) => {
          const store = createKindStore((event) => batch.add(event));
          stores.set(kindKey(kind), store);
          return watch(kind, store, (state) => {
            diagnostics.set(kind, state);
            if (state.type === "missing") log.debug("a kind is not defined in the cluster", { kind: kind.kind });
            if (state.type !== "failing") settle(kind);
          });
        });
        const definitions = createKindStore((event) => event.type === "set" && appearances.seen(event.object));
        // When definitions cannot be read, the watch logs it and only speed is lost: missing kinds are polled for.
        const watchDefinitions = watch(DEFINITIONS, definitions, () => undefined);
        running = Promise.all([...watches, watchDefinitions]);
      });
    },
    async stop() {
      stopping.abort();
      appearances.close();
      await running;
    },
    current: (id) => stores.get(kindKey(id))?.get(id.namespace, id.name),
    counts: () => Object.fromEntries(kinds.map((kind) => [kind.kind, stores.get(kindKey(kind))?.size() ?? 0])),
  };
}

function kindKey({ group, kind }: { readonly group: string; readonly kind: string }): string {
  return `${group}/${kind}`;
}

interface Batch {
  add(event: ObjectEvent): void;
  /** Delivers the collected events, and from then on each batch of changes. */
  open(): void;
  close(): void;
}

/**
 * Collects events into batches, with only the latest event of each object. Before `open` everything is held back, so
 * that the first batch holds the full state of all kinds.
 */
function createBatch(sink: SourceSink): Batch {
  let events = new Map<string, ObjectEvent>();
  let timer: NodeJS.Timeout | undefined;
  let isOpen = false;
  const flush = (): void => {
    timer = undefined;
    const step = [...events.values()];
    events = new Map();
    sink.apply(step);
  };
  return {
    add(event) {
      const key = objectKey(event.type === "set" ? objectId(event.object) : event.id);
      // Deleting first moves the key to the end, so that the latest event of an object keeps its order among the other
      // events.
      events.delete(key);
      events.set(key, event);
      if (isOpen) timer ??= setTimeout(flush, BATCH_MS);
    },
    open() {
      isOpen = true;
      flush();
    },
    close() {
      isOpen = false;
      clearTimeout(timer);
    },
  };
}

/** Tracks the kinds that cannot be read and reports the list when it changes. */
function createDiagnostics(sink: SourceSink): { set(kind: WatchedKind, state: KindState): void } {
  const failing = new Map<WatchedKind, string>();
  return {
    set(kind, state) {
      const before = failing.get(kind);
      const message = state.type === "failing" ? state.message : undefined;
      if (before === message) return;
      if (message === undefined) failing.delete(kind);
      else failing.set(kind, message);
      sink.report([...failing].map(([failed, text]) => diagnosticOf(failed, text)));
    },
  };
}

function diagnosticOf(kind: WatchedKind, message: string): SourceDiagnostic {
  return {
    file: "",
    line: 0,
    column: 0,
    object: kind.kind,
    path: "",
    severity: "error",
    message,
    suggestion: `the service account needs the verbs get, list and watch on ${kind.plural}${kind.group && `.${kind.group}`}`,
  };
}
