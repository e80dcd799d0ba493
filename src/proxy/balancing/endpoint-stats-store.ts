/**
 * The records of members that no Endpoints resource lists: providers of a group, single hosts. Handlers of one backend in
 * several places share them; what no handler asks for any more when all are built anew is let go.
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

  /** The same for everyone who asks. */
  of(backend: string, name: string): EndpointStats {
    let records = this.#backends.get(backend);
    if (records === undefined) this.#backends.set(backend, (records = new Map()));
    let record = records.get(name);
    if (record === undefined) records.set(name, (record = this.open(backend, name)));
    return record;
  }

  /** Builds everything that asks for records of this backend. What is asked for again was never let go of. */
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
