/**
 * Notes what a data plane has answered for one type of resources: when it last acknowledged one, and those that it
 * refuses. `session.ts` uses it, and the dump of the controller shows it.
 */
import type { RejectedResource } from "../nack.ts";

/** State of one type on one data plane. */
export interface TypeSync {
  /** How many resources the data plane should hold. */
  readonly resources: number;
  /** How many of them were sent and are not answered yet. */
  readonly unanswered: number;
  /** RFC 3339; null before the first acknowledgement. */
  readonly acknowledgedAt: string | null;
  /** The newest refusals, oldest first. */
  readonly refused: readonly { readonly key: string; readonly reason: string; readonly at: string }[];
}

/** A data plane may refuse every resource that it is sent. */
const MAX_REFUSALS = 100;
/** People read a reason, and a data plane chooses its length. */
const MAX_REASON_LENGTH = 1_024;

export class Answers {
  readonly #refused = new Map<string, { readonly reason: string; readonly at: string }>();
  #acknowledgedAt: string | null = null;

  acked(keys: readonly string[]): void {
    this.#acknowledgedAt = new Date().toISOString();
    for (const key of keys) this.#refused.delete(key);
  }

  refused(rejected: readonly RejectedResource[]): void {
    const at = new Date().toISOString();
    for (const { key, reason } of rejected) {
      this.#refused.delete(key);
      this.#refused.set(key, { reason: reason.slice(0, MAX_REASON_LENGTH), at });
    }
    for (const key of this.#refused.keys()) {
      if (this.#refused.size <= MAX_REFUSALS) break;
      this.#refused.delete(key);
    }
  }

  /** A resource that is no longer sent is no longer refused either. */
  removed(key: string): void {
    this.#refused.delete(key);
  }

  read(): Pick<TypeSync, "acknowledgedAt" | "refused"> {
    const refused = Array.from(this.#refused, ([key, { reason, at }]) => ({ key, reason, at }));
    return { acknowledgedAt: this.#acknowledgedAt, refused };
  }
}
