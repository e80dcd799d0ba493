/**
 * Keeps the fetched credentials of one `auth` block; every kind that fetches has one.
 *
 *     fetched ─────────── used ───────────┬── used, renewal ahead ──┬── margin ── end
 *                                     3/4 of the usable life    a miss: requests wait
 *
 * A miss waits for one call, which all other misses of the same key share. Within the last quarter of the usable life a
 * request starts a renewal and does not wait for it; a renewal that fails changes nothing and is tried again after a
 * second. A credential that lives no longer than the margin serves the requests that waited for it and is not kept.
 * Failures reach all who wait and are not kept.
 */
import { CalloutError } from "../callouts/callout.ts";
import { messageOf } from "../../lib/errors.ts";
import { RecentMap } from "../../lib/recent-map.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { MaybePromise, RoutedExchange } from "../exchange/exchange.ts";
import type { CredentialReport } from "./report.ts";
import type { FetchedToken, TokenBroker } from "./token.ts";
import { waitFor } from "./wait-for.ts";

export interface TokenCacheOptions {
  /** Name of the kind in the API, for reports. */
  readonly kind: string;
  /** The object and the field of the block, for reports. */
  readonly place: string;
  /** Digest of the block and its place, so that blocks never share. */
  readonly block: string;
  readonly marginMs: number;
  /** 0 keeps nothing. */
  readonly maxEntries: number;
  /** Limit of one fetch. */
  readonly timeoutMs: number;
}

export interface TokenDeps {
  readonly broker: TokenBroker;
  readonly report: CredentialReport;
  readonly nowMs: () => number;
}

const RENEWAL_PAUSE_MS = 1_000;
/** Part of the usable life after which a renewal begins. */
const RENEWAL_AT = 0.75;

interface Entry<T> {
  readonly token: FetchedToken<T>;
  readonly usableUntilMs: number;
  /** Time of the next renewal. */
  renewAtMs: number;
}

/** @typeParam T anything but a promise */
export class TokenCache<T> {
  readonly #options: TokenCacheOptions;
  readonly #deps: TokenDeps;
  readonly #entries: RecentMap<string, Entry<T>>;
  readonly #flights = new Map<string, Promise<FetchedToken<T>>>();

  constructor(options: TokenCacheOptions, deps: TokenDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#entries = new RecentMap(options.maxEntries);
  }

  /**
   * Returns a credential that is good for longer than the margin, or one that was just fetched.
   * @param key digest of what changes the answer; never a raw token
   * @throws ProxyError credential_unavailable, or what `fetch` throws
   */
  get(key: string, caller: Pick<RoutedExchange, "onAbort">, fetch: () => Promise<FetchedToken<T>>): MaybePromise<T> {
    const entry = this.#entries.get(key);
    const nowMs = this.#deps.nowMs();
    if (entry === undefined || nowMs >= entry.usableUntilMs)
      return waitFor(caller, this.#load(key, fetch, undefined)).then(({ value }) => value);
    if (nowMs >= entry.renewAtMs) {
      entry.renewAtMs = nowMs + RENEWAL_PAUSE_MS;
      this.#load(key, fetch, entry.token.fetchedAtMs).catch(() => undefined); // reported by `#measure`
    }
    return entry.token.value;
  }

  #load(
    key: string,
    fetch: () => Promise<FetchedToken<T>>,
    fetchedAfterMs: number | undefined,
  ): Promise<FetchedToken<T>> {
    let flight = this.#flights.get(key);
    if (flight === undefined) {
      flight = this.#obtain(key, fetch, fetchedAfterMs).finally(() => this.#flights.delete(key));
      this.#flights.set(key, flight);
    }
    return flight;
  }

  async #obtain(
    key: string,
    fetch: () => Promise<FetchedToken<T>>,
    fetchedAfterMs: number | undefined,
  ): Promise<FetchedToken<T>> {
    const { block, marginMs, maxEntries } = this.#options;
    const request = { key: `${block}/${key}`, marginMs, fetchedAfterMs };
    const token = await this.#deps.broker.obtain(request, () => this.#measure(fetch));
    const usableUntilMs = token.expiresAtMs - marginMs;
    const nowMs = this.#deps.nowMs();
    if (nowMs >= token.expiresAtMs) throw unavailable("the credential had ended when it came");
    const renewAtMs = token.fetchedAtMs + (usableUntilMs - token.fetchedAtMs) * RENEWAL_AT;
    if (nowMs < usableUntilMs && maxEntries > 0) this.#entries.set(key, { token, usableUntilMs, renewAtMs });
    return token;
  }

  async #measure(fetch: () => Promise<FetchedToken<T>>): Promise<FetchedToken<T>> {
    const { timeoutMs } = this.#options;
    const { report, nowMs } = this.#deps;
    const startedAtMs = nowMs();
    const secondsSince = (): number => (nowMs() - startedAtMs) / 1000;
    try {
      const token = await within(timeoutMs, fetch());
      report.succeeded(secondsSince(), token.expiresAtMs - nowMs());
      return token;
    } catch (cause) {
      const error = cause instanceof ProxyError ? cause : unavailable(reasonOf(cause), cause);
      report.failed(secondsSince(), error);
      throw error;
    }
  }
}

function reasonOf(error: unknown): string {
  return error instanceof CalloutError ? (error.detail ?? error.message) : messageOf(error);
}

function unavailable(detail: string, cause?: unknown): ProxyError {
  return new ProxyError("credential_unavailable", { detail, cause });
}

function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(unavailable(`no credential came within ${ms} ms`)), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
