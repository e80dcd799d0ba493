/**
 * Writes statuses to the API server. `src/controller` uses it. Each change causes one write, an unchanged status none,
 * and parts that belong to other controllers are never overwritten.
 *
 * In: desired statuses, and objects as they are observed. Out: writes through a StatusClient. The content of a status
 * comes from compute.ts; merging is in merge.ts and patches.ts.
 */
import { objectId, objectKey, type KubeObject, type ObjectId } from "../api/object.ts";
import { messageOf, SourceError } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { DesiredStatus } from "./desired.ts";
import { statusWrite } from "./patches.ts";
import { createKeyedQueue } from "../lib/keyed-queue.ts";

/**
 * The Kubernetes operations that the writer needs. Any failure besides the named outcomes is thrown, and the write is
 * retried.
 */
export interface StatusClient {
  /**
   * Reads an object. With `isFresh` the server is asked; otherwise a cache may answer.
   * @returns undefined when there is none
   */
  read(id: ObjectId, isFresh: boolean): Promise<KubeObject | undefined>;
  /**
   * Applies a status server-side with the controller's field manager, and takes over fields that other managers hold.
   */
  apply(id: ObjectId, status: Readonly<Record<string, unknown>>): Promise<"written" | "gone">;
  /** Replaces members of the status if the object still has this version. */
  replace(
    id: ObjectId,
    resourceVersion: string,
    status: Readonly<Record<string, unknown>>,
  ): Promise<"written" | "conflict" | "gone">;
}

export interface StatusWriter {
  /** Sets the status that an object should have from now on. */
  put(desired: DesiredStatus): void;
  /**
   * Compares an observed object with its desired status. When its part was removed or changed, it is written again
   * after a growing delay.
   */
  observe(object: KubeObject): void;
  /** Forgets an object that was deleted. */
  forget(id: ObjectId): void;
  /** Stops writing, because another replica writes; desired statuses are only remembered until `resume`. */
  pause(): void;
  /** Starts writing again, beginning with everything that was remembered. */
  resume(): void;
  /** Resolves when all desired statuses have been written. */
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
/** A status that changes between each read and write is retried by the queue, with longer delays. */
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
      // Write with a growing delay: two controllers that disagree must not flood the API server.
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

/** @throws every error of the client, and SourceError when the object changes during each attempt */
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
