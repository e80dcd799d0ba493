/**
 * Keeps the report of this replica in a ConfigMap of the controller's namespace, one for each replica, which all
 * replicas watch. `replica-acknowledgements.ts` uses it. Changes within half a second are one write, and a text that is
 * there already is not written. The Pod owns the ConfigMap, so it goes with the replica, also with one that was killed.
 */
import { createHash } from "node:crypto";
import { createBackoff } from "../../lib/time/backoff.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { isStatus } from "../../sources/kubernetes/api-error.ts";
import type { KubernetesClient } from "../../sources/kubernetes/client.ts";
import { ownedBy, type ObjectOwner } from "../../sources/kubernetes/owner.ts";

export interface ReportStoreOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  /** Name that tells replicas apart. */
  readonly identity: string;
  readonly fieldManager: string;
  readonly owner: ObjectOwner | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export const REPORT_LABELS = {
  "app.kubernetes.io/component": "acknowledgements",
  "app.kubernetes.io/name": "gwproxy",
} as const;
export const REPORT_PREFIX = "gwproxy-acknowledgements-";
export const REPORT_KEY = "report.json";

const QUIET_MS = 500;
const RETRY_MS = { initialMs: 500, maxMs: 10_000 } as const;

/** The name of the ConfigMap; identities may hold characters that a name may not. */
export function reportName(identity: string): string {
  return REPORT_PREFIX + createHash("sha256").update(identity).digest("hex").slice(0, 16);
}

export class ReportStore {
  readonly #options: ReportStoreOptions;
  readonly #path: string;
  readonly #backoff = createBackoff(RETRY_MS);
  /** The text that the API server has; undefined when there is none, or it is not known. */
  #stored: string | undefined;
  #wanted: (() => string | undefined) | undefined;
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(options: ReportStoreOptions) {
    this.#options = options;
    const { namespace, identity } = options;
    this.#path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps/${reportName(identity)}`;
  }

  /** Takes what the watch has seen. */
  seen(text: string | undefined): void {
    this.#stored = text;
  }

  /** Writes soon. @param wanted returns the text at that time, or undefined for no ConfigMap */
  write(wanted: () => string | undefined): void {
    this.#wanted = wanted;
    if (this.#cancel === undefined) this.#schedule(QUIET_MS);
  }

  /** Removes the ConfigMap, so that others need not wait until the Pod is gone. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#running;
    this.#wanted = () => undefined;
    await this.#reconcile();
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancel = this.#options.clock.after(delayMs, () => {
      this.#cancel = undefined;
      this.#running = this.#running.then(() => this.#reconcile());
    });
  }

  async #reconcile(): Promise<void> {
    const text = this.#wanted?.();
    if (text === this.#stored) return;
    const { log, namespace } = this.#options;
    try {
      if (text === undefined) await this.#delete();
      else await this.#apply(text);
      this.#stored = text;
      this.#backoff.reset();
    } catch (error) {
      log.warn("what data planes acknowledged cannot be told to the other replicas", {
        namespace,
        error: messageOf(error),
      });
      if (this.#cancel === undefined) this.#schedule(this.#backoff.next());
    }
  }

  async #apply(text: string): Promise<void> {
    const { client, namespace, identity, fieldManager, owner } = this.#options;
    const annotations = { "gwproxy.dev/replica": identity };
    const metadata = { name: reportName(identity), namespace, labels: REPORT_LABELS, annotations, ...ownedBy(owner) };
    await client.request({
      method: "PATCH",
      path: this.#path,
      query: { fieldManager, force: "true" },
      contentType: "application/apply-patch+yaml",
      body: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { [REPORT_KEY]: text } },
    });
  }

  async #delete(): Promise<void> {
    try {
      await this.#options.client.request({ method: "DELETE", path: this.#path });
    } catch (error) {
      if (!isStatus(error, 404)) throw error;
    }
  }
}
