/**
 * What became of the last updates of each type of resource, for `sync` of /config_dump: the version served, and the
 * version that was refused, with its reason. The data plane notes every update in it.
 */
import type { ApplyResult, ResourceUpdate } from "../ir/resource.ts";
import { typeUrlOf } from "../xds/codec.ts";

interface SyncedVersion {
  readonly key: string;
  readonly version: string;
  /** RFC 3339. */
  readonly at: string;
}

interface SyncedType {
  accepted: SyncedVersion | null;
  rejected: (SyncedVersion & { readonly message: string }) | null;
}

export class SyncReport {
  readonly #types = new Map<string, SyncedType>();
  readonly #now: () => Date;

  constructor(now: () => Date = () => new Date()) {
    this.#now = now;
  }

  note({ set }: ResourceUpdate, { refused }: ApplyResult): void {
    const at = this.#now().toISOString();
    const reasons = new Map(refused.map(({ type, key, reason }) => [`${type} ${key}`, reason]));
    for (const { type, key, version } of set) {
      const url = typeUrlOf(type);
      const synced = this.#types.get(url) ?? { accepted: null, rejected: null };
      this.#types.set(url, synced);
      const message = reasons.get(`${type} ${key}`);
      if (message === undefined) synced.accepted = { key, version, at };
      else synced.rejected = { key, version, at, message };
    }
  }

  dump(): Readonly<Record<string, SyncedType>> {
    return Object.fromEntries([...this.#types].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}
