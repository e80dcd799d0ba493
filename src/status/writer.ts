/**
 * Writes statuses to the API server: once per change, nothing when the object says it already, and never over another
 * controller's part. In: desired statuses, sights of objects. Out: writes through a StatusClient. Not here: what a
 * status should say (compute.ts), how it is merged (merge.ts, patches.ts).
 */
import { objectId, objectKey, type KubeObject, type ObjectId } from "../api/object.ts";
import { messageOf, SourceError } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { DesiredStatus } from "./desired.ts";
import { statusWrite } from "./patches.ts";
import { createKeyedQueue } from "../lib/keyed-queue.ts";

/** What the writer needs of a Kubernetes API. Failures other than the named outcomes are thrown and tried again. */
export interface StatusClient {
  /** The object as it is; `isFresh` asks the server, otherwise a cache may answer. @returns undefined when there is none */
  read(id: ObjectId, isFresh: boolean): Promise<KubeObject | undefined>;
  /** Server-side apply of the status with our field manager, taking fields over where others hold them. */
  apply(id: ObjectId, status: Readonly<Record<string, unknown>>): Promise<"written" | "gone">;
  /** Replaces members of the status if the object still has this version. */
  replace(
    id: ObjectId,
    resourceVersion: string,
    status: Readonly<Record<string, unknown>>,
  ): Promise<"written" | "conflict" | "gone">;
}

export interface StatusWriter {
  /** The status an object should have from now on. */
  put(desired: DesiredStatus): void;
  /** An object was seen: when somebody removed or changed our part of its status, it is written again, unhurried. */
  observe(object: KubeObject): void;
  /** The object is gone. */
  forget(id: ObjectId): void;
  /** Another replica writes: until `resume`, what is wanted is only remembered. */
  pause(): void;
  /** Writes what is wanted from now on, and what was wanted meanwhile. */
  resume(): void;
  /** Resolves when everything wanted has been written. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

export interface StatusWriterOptions {
  readonly client: StatusClient;
  readonly log: Logger;
  readonly now?: () => Date;
  readonly retryMs?: { readonly initial: number; readonly max: number };
}

const CONCURRENT_WRITES = 4;
/** A status that changes between every read and write is left to the queue's longer waits. */
const CONFLICTS_IN_A_ROW = 5;

export function createStatusWriter(options: StatusWriterOptions): StatusWriter {
  const { client, log, now = () => new Date(), retryMs = { initial: 500, max: 10_000 } } = options;
  const wanted = new Map<string, DesiredStatus>();
  let isPaused = false;

  const queue = createKeyedQueue<DesiredStatus>({
    concurrency: CONCURRENT_WRITES,
    retryMs,
    work: (_, desired) => writeStatus(client, desired, now),
    onFailure: (key, error, retryInMs) => {
      log.warn("a status could not be written", { object: key, error: messageOf(error), retryInMs });
    },
  });

  return {
    put(desired) {
      const key = objectKey(desired.id);
      wanted.set(key, desired);
      if (!isPaused) queue.put(key, desired);
    },
    observe(object) {
      const key = objectKey(objectId(object));
      const desired = wanted.get(key);
      if (isPaused || desired === undefined || queue.has(key)) return;
      // Later, and each time later: two that disagree must not fill the API server with their quarrel.
      if (statusWrite(desired, object, now()) !== undefined) queue.putLater(key, desired);
    },
    forget(id) {
      wanted.delete(objectKey(id));
      queue.forget(objectKey(id));
    },
    pause() {
      isPaused = true;
      for (const key of wanted.keys()) queue.forget(key);
    },
    resume() {
      isPaused = false;
      for (const [key, desired] of wanted) queue.put(key, desired);
    },
    idle: () => queue.idle(),
    stop: () => queue.stop(),
  };
}

/** @throws what the client throws, and SourceError when the object changes under every attempt */
async function writeStatus(client: StatusClient, desired: DesiredStatus, now: () => Date): Promise<void> {
  const { id } = desired;
  for (let attempt = 0; attempt < CONFLICTS_IN_A_ROW; attempt++) {
    const object = await client.read(id, attempt > 0);
    if (object === undefined) return;
    const write = statusWrite(desired, object, now());
    if (write === undefined) return;
    const outcome =
      write.form === "apply"
        ? await client.apply(id, write.status)
        : await client.replace(id, write.resourceVersion, write.status);
    if (outcome !== "conflict") return;
  }
  throw new SourceError("the object changed under every attempt to write its status");
}
