/**
 * Events: what people read below `kubectl describe`. One that happens again is counted, as Kubernetes itself does. An
 * event that cannot be written is logged and nothing else: it only tells what status and log say too.
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
  /** The name of this program in events. */
  readonly component: string;
  readonly log: Logger;
  readonly now?: () => Date;
}

/** The API takes no longer ones. */
const MAX_MESSAGE_LENGTH = 1024;
/** Events that are remembered, so that they are counted and not made again. */
const MAX_REMEMBERED = 1000;
/** A data plane that refuses without end must not fill the memory: what comes on top is left to status and log. */
const MAX_WAITING = 100;

export function createEventRecorder({ client, component, log, now = () => new Date() }: EventOptions): EventRecorder {
  const counts = new RecentMap<string, number>(MAX_REMEMBERED);
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  async function write(object: KubeObject, reason: string, message: string): Promise<void> {
    const { name, namespace = "default", uid } = object.metadata;
    const digest = hash("sha256", `${uid} ${reason} ${message}`).slice(0, 16);
    const id = `${name.slice(0, 200)}.${digest}`;
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
      // It is there from before a restart, or has been cleared away since.
      if (count === 1 && isStatus(error, 409)) await patch();
      else if (count > 1 && isStatus(error, 404)) await create();
      else throw error;
    }
  }

  return {
    warn(object, reason, message) {
      if (waiting >= MAX_WAITING) return log.debug("too many events are waiting to be written", { reason });
      waiting++;
      const text = message.slice(0, MAX_MESSAGE_LENGTH);
      // One after the other: a data plane that refuses a thousand resources must not open a thousand requests.
      last = last
        .then(() => write(object, reason, text))
        .catch((error: unknown) => log.warn("an event could not be written", { reason, error: messageOf(error) }))
        .finally(() => waiting--);
    },
  };
}
