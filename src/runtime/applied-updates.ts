/**
 * Remembers when the configuration of a data plane last changed and which resources it refused since. The console of
 * the admin server shows it.
 */
import type { ApplyResult, ResourceUpdate } from "../ir/resource.ts";

export interface Refusal {
  readonly type: string;
  readonly key: string;
  readonly reason: string;
  /** RFC 3339. */
  readonly at: string;
}

/** The newest are kept: a controller may send any number of resources that do not compile. */
const MAX_REFUSALS = 100;

export class AppliedUpdates {
  readonly #refusals = new Map<string, Refusal>();
  readonly #now: () => Date;
  #appliedAt: string | null = null;

  constructor(now: () => Date = () => new Date()) {
    this.#now = now;
  }

  /** RFC 3339; null before the first update. */
  get appliedAt(): string | null {
    return this.#appliedAt;
  }

  /** A resource that is set or removed again is no longer refused, unless the result says so. */
  record({ set, removed }: ResourceUpdate, { refused }: ApplyResult): void {
    this.#appliedAt = this.#now().toISOString();
    for (const { type, key } of [...set, ...removed, ...refused]) this.#refusals.delete(`${type} ${key}`);
    for (const { type, key, reason } of refused)
      this.#refusals.set(`${type} ${key}`, { type, key, reason, at: this.#appliedAt });
    for (const name of this.#refusals.keys()) {
      if (this.#refusals.size <= MAX_REFUSALS) break;
      this.#refusals.delete(name);
    }
  }

  /** Returns the resources that are refused at the moment, the newest first. */
  refusals(): Refusal[] {
    return [...this.#refusals.values()].toReversed();
  }
}
