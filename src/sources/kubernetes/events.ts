/**
 * Writes Kubernetes Events, which users read in `kubectl describe`. The controller uses it. A repeated event increases
 * the count of the first one, as Kubernetes itself does. A failed write is only logged, because status and log say the
 * same.
 */
import { hash } from "node:crypto";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { RecentMap } from "../../lib/recent-map.ts";
import type { KubeObject } from "../../api/object.ts";
import { isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";

export interface EventRecorder {
  /** @param reason one word, such as "GwProxyNack" */
  warn(object: KubeObject, reason: string, message: string): void;
}

export interface EventOptions {
  readonly client: KubernetesClient;
  /** Name of this program in events. */
  readonly component: string;
  readonly log: Logger;
  readonly now?: () => Date;
}

/** Limit of the API for messages. */
const MAX_MESSAGE_LENGTH = 1024;
/** Limit of remembered events; a forgotten one is created again instead of counted. */
const MAX_REMEMBERED = 1000;
/**
 * Limit of queued events. A data plane that keeps refusing must not fill the memory, so further events are dropped;
 * status and log still have them.
 */
const MAX_WAITING = 100;

export function createEventRecorder({ client, component, log, now = () => new Date() }: EventOptions): EventRecorder {
  const counts = new RecentMap<string, number>(MAX_REMEMBERED);
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  async function write(object: KubeObject, reason: string, message: string): Promise<void> {
    const { name, namespace = "default", uid } = object.metadata;
    const digest = hash("sha256", `${uid} ${reason} ${message}`).slice(0, 16);
    // A label of a name must not end with "-", and a part of the name must not be empty.
    const id = `${name.slice(0, 200).replace(/[-.]+$/, "")}.${digest}`;
    const collection = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
    const time = `${now().toISOString().slice(0, 19)}Z`;
    const count = (counts.get(`${namespace}/${id}`) ?? 0) + 1;
    counts.set(`${namespace}/${id}`, count);
    const event = {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: id, namespace },
      involvedObject: { apiVersion: object.apiVersion, kind: object.kind, namespace, name, uid },
      reason,
      message,
      type: "Warning",
      source: { component },
      firstTimestamp: time,
      lastTimestamp: time,
      count,
    };
    const again = { count, lastTimestamp: time };
    const patch = (): Promise<unknown> =>
      client.request({
        method: "PATCH",
        path: `${collection}/${encodeURIComponent(id)}`,
        contentType: "application/merge-patch+json",
        body: again,
      });
    const create = (): Promise<unknown> => client.request({ method: "POST", path: collection, body: event });
    try {
      await (count === 1 ? create() : patch());
    } catch (error) {
      // The event exists from before a restart, or it was removed in the meantime.
      if (count === 1 && isStatus(error, 409)) await patch();
      else if (count > 1 && isStatus(error, 404)) await create();
      else throw error;
    }
  }

  return {
    warn(object, reason, message) {
      if (waiting >= MAX_WAITING) return log.debug("too many events are waiting to be written", { reason });
      waiting++;
      // A cut may leave half of a character, which the API server refuses.
      const text = message.slice(0, MAX_MESSAGE_LENGTH).toWellFormed();
      // Writes are serialised: a data plane that refuses a thousand resources must not start a thousand requests.
      last = last
        .then(() => write(object, reason, text))
        .catch((error: unknown) => log.warn("an event could not be written", { reason, error: messageOf(error) }))
        .finally(() => waiting--);
    },
  };
}
