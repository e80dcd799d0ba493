/** The fetched credentials of one thread: makes the caches of `auth` blocks, and knows what to report about them. */
import { monotonicMs } from "../../lib/time/monotonic.ts";
import { TokenCache, type TokenCacheOptions } from "./cache.ts";
import { CredentialReport, newestRows, type CredentialDump, type ReportDeps } from "./report.ts";
import { directBroker, type TokenBroker } from "./token.ts";

export interface TokensOptions extends ReportDeps {
  /** Shares calls with other threads; without it this thread fetches for itself. */
  readonly broker?: TokenBroker | undefined;
}

export class Tokens {
  readonly #options: TokensOptions;
  /** Reports live as long as their caches, which live as long as their blocks. */
  #reports: WeakRef<CredentialReport>[] = [];

  constructor(options: TokensOptions) {
    this.#options = options;
  }

  cache<T>(options: TokenCacheOptions): TokenCache<T> {
    const report = new CredentialReport(options.kind, options.place, this.#options);
    this.#reports = this.#reports.filter((each) => each.deref() !== undefined);
    this.#reports.push(new WeakRef(report));
    return new TokenCache<T>(options, { broker: this.#options.broker ?? directBroker, report, nowMs: monotonicMs });
  }

  dump(): CredentialDump[] {
    return newestRows(this.#reports.flatMap((each) => each.deref()?.dump() ?? []));
  }
}
