/**
 * Remembers what became of the updates of a data plane, which records each of them: when the last one came and which
 * resources are refused, for the console of the admin server, and the last accepted and rejected version of each type,
 * for `sync` of /config_dump.
 */
import type { ApplyResult, ResourceType, ResourceUpdate } from "../ir/resource.ts";
import { compare } from "../lib/compare.ts";
import { typeUrlOf } from "../xds/codec.ts";

export interface Refusal {
  readonly type: string;
  readonly key: string;
  readonly reason: string;
  /** RFC 3339. */
  readonly at: string;
}

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

/** The newest are kept: a controller may send any number of resources that do not compile. */
const MAX_REFUSALS = 100;

export class AppliedUpdates {
  readonly #refusals = new Map<string, Refusal>();
  /** By type URL. */
  readonly #types = new Map<string, SyncedType>();
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
    const at = this.#now().toISOString();
    this.#appliedAt = at;
    for (const { type, key } of [...set, ...removed, ...refused]) this.#refusals.delete(`${type} ${key}`);
    const reasons = new Map(refused.map(({ type, key, reason }) => [`${type} ${key}`, reason]));
    for (const { type, key, version } of set)
      this.#noteVersion(type, { key, version, at }, reasons.get(`${type} ${key}`));
    for (const { type, key, reason } of refused) this.#refusals.set(`${type} ${key}`, { type, key, reason, at });
    for (const name of this.#refusals.keys()) {
      if (this.#refusals.size <= MAX_REFUSALS) break;
      this.#refusals.delete(name);
    }
  }

  /** @param message why the version was rejected; undefined when it was accepted */
  #noteVersion(type: ResourceType, version: SyncedVersion, message: string | undefined): void {
    const url = typeUrlOf(type);
    const synced = this.#types.get(url) ?? { accepted: null, rejected: null };
    this.#types.set(url, synced);
    if (message === undefined) synced.accepted = version;
    else synced.rejected = { ...version, message };
  }

  /** Returns the last versions by type URL. */
  sync(): Readonly<Record<string, SyncedType>> {
    return Object.fromEntries([...this.#types].sort(([a], [b]) => compare(a, b)));
  }

  /** Returns the resources that are refused at the moment, the newest first. */
  refusals(): Refusal[] {
    return [...this.#refusals.values()].toReversed();
  }
}
