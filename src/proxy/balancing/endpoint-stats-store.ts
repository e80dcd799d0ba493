/**
 * Statistics of endpoints that no Endpoints resource lists: providers of a group, single hosts. All handlers of one
 * backend share them. A rebuild of the backend releases the statistics that no handler has asked for again. The
 * registry uses it.
 */
import type { SharedTable } from "../../lib/shared-table.ts";
import { EndpointStats } from "./endpoint-stats.ts";

export class EndpointStatsStore {
  readonly #slots: SharedTable;
  readonly #backends = new Map<string, Map<string, EndpointStats>>();

  constructor(slots: SharedTable) {
    this.#slots = slots;
  }

  /** @param name unique in its backend */
  open(backend: string, name: string): EndpointStats {
    return new EndpointStats(this.#slots, `endpoint ${backend} ${name}`);
  }

  /** Returns the same object for the same backend and name. */
  of(backend: string, name: string): EndpointStats {
    let records = this.#backends.get(backend);
    if (records === undefined) this.#backends.set(backend, (records = new Map()));
    let record = records.get(name);
    if (record === undefined) records.set(name, (record = this.open(backend, name)));
    return record;
  }

  /**
   * Rebuilds everything that uses the statistics of a backend. `build` asks for them before the old ones are released.
   */
  renew(backend: string, build: () => void): void {
    const before = this.#backends.get(backend);
    this.#backends.delete(backend);
    build();
    for (const record of before?.values() ?? []) record.close();
  }

  *entries(): Iterable<{ readonly backend: string; readonly name: string; readonly record: EndpointStats }> {
    for (const [backend, records] of this.#backends)
      for (const [name, record] of records) yield { backend, name, record };
  }
}
