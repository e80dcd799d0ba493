/**
 * Addresses of upstream host names: looked up once, refreshed in the background while in use, handed out in rotation.
 * A look-up that fails keeps the last good answer; names that nobody asked for since the last refresh are forgotten.
 */
import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";

export interface Resolver {
  /** @returns the next address of the name, synchronously when it is known. Rejects when there is none. */
  resolve(host: string): string | Promise<string>;
  close(): void;
}

export interface ResolverOptions {
  readonly nowMs?: () => number;
  readonly lookup?: (host: string) => Promise<readonly string[]>;
}

interface Entry {
  addresses: readonly string[];
  next: number;
  refreshAtMs: number;
  failures: number;
  pending: Promise<void> | undefined;
  used: boolean;
  error: unknown;
}

const REFRESH_MS = 30_000;
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;

export function createResolver(options: ResolverOptions = {}): Resolver {
  const nowMs = options.nowMs ?? (() => performance.now());
  const lookup = options.lookup ?? lookupAll;
  const entries = new Map<string, Entry>();

  const ask = async (host: string, entry: Entry): Promise<void> => {
    try {
      const addresses = await lookup(host);
      if (addresses.length === 0) throw new Error("no address");
      entry.addresses = addresses;
      entry.failures = 0;
      entry.refreshAtMs = nowMs() + REFRESH_MS;
    } catch (error) {
      entry.error = error;
      entry.refreshAtMs = nowMs() + Math.min(FIRST_RETRY_MS * 2 ** entry.failures, LAST_RETRY_MS);
      entry.failures++;
    } finally {
      entry.pending = undefined;
    }
  };
  const refresh = (host: string, entry: Entry): Promise<void> => {
    entry.pending ??= ask(host, entry);
    return entry.pending;
  };
  const rotate = (entry: Entry): string => entry.addresses[entry.next++ % entry.addresses.length] as string;

  const timer = setInterval(() => {
    for (const [host, entry] of entries) {
      if (!entry.used && entry.pending === undefined) entries.delete(host);
      else if (nowMs() >= entry.refreshAtMs) {
        entry.used = false;
        void refresh(host, entry);
      }
    }
  }, REFRESH_MS);
  timer.unref();

  return {
    resolve(host) {
      if (isIP(host) !== 0) return host;
      let entry = entries.get(host);
      if (entry === undefined) {
        entry = {
          addresses: [],
          next: 0,
          refreshAtMs: 0,
          failures: 0,
          pending: undefined,
          used: true,
          error: undefined,
        };
        entries.set(host, entry);
      }
      entry.used = true;
      const due = nowMs() >= entry.refreshAtMs;
      if (entry.addresses.length > 0) {
        if (due) void refresh(host, entry);
        return rotate(entry);
      }
      const known = entry;
      if (!due && entry.pending === undefined) return Promise.reject(entry.error);
      return refresh(host, entry).then(() => {
        if (known.addresses.length === 0) throw known.error;
        return rotate(known);
      });
    },
    close() {
      clearInterval(timer);
      entries.clear();
    },
  };
}

async function lookupAll(host: string): Promise<readonly string[]> {
  const found = await systemLookup(host, { all: true });
  return found.map(({ address }) => address);
}
