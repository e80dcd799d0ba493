/**
 * Removes the series of routes and Binds ten minutes after these are no longer configured, so that changes do not fill
 * the memory.
 */
import { UNKNOWN } from "./label-value.ts";
import type { Registry } from "./registry.ts";

const KEPT_MS = 600_000;

export class SeriesExpiry {
  readonly #registry: Registry;
  readonly #label: string;
  /** When each value was first missing. */
  #missedAtMs: ReadonlyMap<string, number> = new Map();

  constructor(registry: Registry, label: string) {
    this.#registry = registry;
    this.#label = label;
  }

  /**
   * @param present the values that are configured now
   * @param nowMs from a monotonic clock
   */
  review(present: ReadonlySet<string>, nowMs: number): void {
    const missed = new Map<string, number>();
    const over = new Set<string>();
    for (const value of this.#registry.valuesOf(this.#label)) {
      if (value === UNKNOWN || present.has(value)) continue;
      const sinceMs = this.#missedAtMs.get(value) ?? nowMs;
      if (nowMs - sinceMs >= KEPT_MS) over.add(value);
      else missed.set(value, sinceMs);
    }
    this.#missedAtMs = missed;
    if (over.size > 0) this.#registry.forget(this.#label, over);
  }
}
