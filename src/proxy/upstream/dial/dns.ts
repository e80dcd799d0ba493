/**
 * Cache of the addresses of upstream host names; `createProxy` creates one for all dials of a thread. A name is looked
 * up once (singleflight), refreshed in the background while it is in use, and its addresses are handed out in rotation.
 *
 *     first use ──▶ look-up ──▶ known ──(TTL, 1 s to 5 min)──▶ used since? ── yes ──▶ look-up in the background
 *                      │          ▲                               └───────── no ──▶ forgotten
 *                      └─ error ──┴─ the last good answer stays; next look-up after 100 ms, doubled up to 5 s
 *
 * The last good answer stays valid while look-ups fail (serve-stale, RFC 8767): otherwise a DNS outage would take down
 * upstreams that work. The cache is bounded in names and in concurrent look-ups, because clients choose names where
 * dynamic forwarding is used. See docs/adr/0008-names-of-upstreams.md.
 */
import { isIP } from "node:net";
import { createLookup, type FoundAddresses, type Lookup } from "./lookup.ts";

export interface Resolver {
  /**
   * Returns the addresses in the order in which to try them, with another one first each time; at once when they are
   * known. Rejects when there are none.
   */
  addresses(host: string): readonly string[] | Promise<readonly string[]>;
  /**
   * Addresses that pooled connections may have; undefined while they are unknown. Counts as a use, so it triggers
   * look-ups.
   */
  known(host: string): ReadonlySet<string> | undefined;
  close(): void;
}

export interface ResolverOptions {
  readonly nowMs?: () => number;
  readonly lookup?: Lookup;
}

const SHORTEST_MS = 1_000;
const LONGEST_MS = 300_000;
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;
/** How long a name without addresses is remembered after its last use. */
const UNUSED_MS = 5_000;
/** Clients can choose names, so concurrent look-ups and remembered names are limited. */
const MAX_PENDING = 512;
const MAX_NAMES = 16_384;

export function createResolver(options: ResolverOptions = {}): Resolver {
  const nowMs = options.nowMs ?? (() => performance.now());
  const names = new Names(options.lookup ?? createLookup(), nowMs);
  return {
    addresses: (host) => (isIP(host) === 0 ? names.addresses(host) : [host]),
    known: (host) => names.known(host),
    close: () => names.close(),
  };
}

class Names {
  readonly lookup: Lookup;
  readonly nowMs: () => number;
  pending = 0;
  readonly #entries = new Map<string, Entry>();

  constructor(lookup: Lookup, nowMs: () => number) {
    this.lookup = lookup;
    this.nowMs = nowMs;
  }

  addresses(host: string): readonly string[] | Promise<readonly string[]> {
    return this.#entry(host)?.addresses() ?? Promise.reject(new Error("too many names are in use"));
  }

  known(host: string): ReadonlySet<string> | undefined {
    return this.#entry(host)?.known();
  }

  /** @returns undefined when the table is full */
  #entry(host: string): Entry | undefined {
    let entry = this.#entries.get(host);
    if (entry === undefined && this.#entries.size < MAX_NAMES) this.#entries.set(host, (entry = new Entry(this, host)));
    return entry;
  }

  forget(host: string): void {
    this.#entries.delete(host);
  }

  close(): void {
    for (const entry of this.#entries.values()) entry.close();
    this.#entries.clear();
  }
}

class Entry {
  readonly #names: Names;
  readonly #host: string;
  #found: readonly string[] = [];
  #set: ReadonlySet<string> | undefined;
  #next = 0;
  #used = false;
  #failures = 0;
  #dueMs = 0;
  #error: unknown;
  #asking: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(names: Names, host: string) {
    this.#names = names;
    this.#host = host;
  }

  addresses(): readonly string[] | Promise<readonly string[]> {
    this.#used = true;
    if (this.#found.length > 0) return this.#rotated();
    if (this.#asking === undefined && this.#names.nowMs() < this.#dueMs) return Promise.reject(this.#error);
    return this.#refresh().then(() => {
      if (this.#found.length === 0) throw this.#error;
      return this.#rotated();
    });
  }

  known(): ReadonlySet<string> | undefined {
    this.#used = true;
    if (this.#set === undefined && this.#asking === undefined && this.#names.nowMs() >= this.#dueMs)
      void this.#refresh();
    return this.#set;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #rotated(): readonly string[] {
    const found = this.#found;
    const first = this.#next++ % found.length;
    return first === 0 ? found : [...found.slice(first), ...found.slice(0, first)];
  }

  #refresh(): Promise<void> {
    this.#asking ??= this.#ask();
    return this.#asking;
  }

  async #ask(): Promise<void> {
    try {
      if (this.#names.pending >= MAX_PENDING) throw new Error("too many names are being looked up");
      this.#names.pending++;
      try {
        this.#learned(await this.#names.lookup(this.#host));
      } finally {
        this.#names.pending--;
      }
    } catch (error) {
      // Keep the known addresses: a DNS server that fails must not take the upstreams down as well.
      this.#error = error;
      this.#again(Math.min(FIRST_RETRY_MS * 2 ** Math.min(this.#failures++, 10), LAST_RETRY_MS));
    }
    this.#asking = undefined;
  }

  #learned({ addresses, ttlMs }: FoundAddresses): void {
    this.#failures = 0;
    // `#next` is kept, so that a refresh does not send all connections to the first address again.
    this.#found = addresses;
    this.#set = addresses.length === 0 ? undefined : new Set(addresses);
    if (addresses.length === 0) this.#error = new Error("the name has no address");
    this.#again(Math.min(Math.max(ttlMs, SHORTEST_MS), LONGEST_MS));
  }

  #again(afterMs: number): void {
    this.#dueMs = this.#names.nowMs() + afterMs;
    this.#wake(this.#found.length > 0 ? afterMs : Math.max(afterMs, UNUSED_MS));
  }

  #wake(afterMs: number): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#due(), afterMs);
    this.#timer.unref();
  }

  /**
   * Forgets a name without recent use, and refreshes the others. A name without addresses is looked up at its next use.
   */
  #due(): void {
    if (!this.#used) {
      this.#names.forget(this.#host);
      return;
    }
    this.#used = false;
    if (this.#found.length > 0) void this.#refresh();
    else this.#wake(UNUSED_MS);
  }
}
