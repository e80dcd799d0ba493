/**
 * What is known about the fetched credentials of one `auth` block: metrics, log lines and a row of `/config_dump`. No
 * value of a credential and no text of the other side gets here.
 */
import type { Logger } from "../../lib/log.ts";
import type { ProxyError } from "../exchange/errors.ts";

/** One row of `credentials` in `/config_dump`. */
export interface CredentialDump {
  readonly kind: string;
  /** The object and the field that ask for the credential. */
  readonly place: string;
  /** RFC 3339; null before the first success. Of several credentials of one block, the last one fetched. */
  readonly fetchedAt: string | null;
  readonly expiresAt: string | null;
  readonly lastError: string | null;
}

/** `refused`: the client's own token is at fault. */
type FetchResult = "ok" | "error" | "refused";

export interface ReportDeps {
  readonly log: Logger;
  /** undefined when nothing is counted. */
  readonly onFetched?: ((kind: string, result: FetchResult, seconds: number) => void) | undefined;
}

export class CredentialReport {
  readonly #kind: string;
  readonly #place: string;
  readonly #deps: ReportDeps;
  #fetchedAtMs: number | undefined;
  #expiresAtMs: number | undefined;
  #lastError: string | undefined;
  #fails = false;

  constructor(kind: string, place: string, deps: ReportDeps) {
    this.#kind = kind;
    this.#place = place;
    this.#deps = deps;
  }

  /** @param lifetimeMs from now */
  succeeded(seconds: number, lifetimeMs: number): void {
    this.#deps.onFetched?.(this.#kind, "ok", seconds);
    this.#fetchedAtMs = Date.now();
    this.#expiresAtMs = this.#fetchedAtMs + lifetimeMs;
    if (this.#fails) this.#deps.log.info("credentials are fetched again", { kind: this.#kind, place: this.#place });
    this.#fails = false;
  }

  failed(seconds: number, { status, detail, code }: ProxyError): void {
    const isRefused = status < 500;
    this.#deps.onFetched?.(this.#kind, isRefused ? "refused" : "error", seconds);
    // A client with a bad token must not fill the log.
    if (isRefused) return;
    const reason = detail ?? code;
    this.#lastError = reason;
    if (!this.#fails)
      this.#deps.log.warn("a credential cannot be fetched", { kind: this.#kind, place: this.#place, reason });
    this.#fails = true;
  }

  dump(): CredentialDump {
    return {
      kind: this.#kind,
      place: this.#place,
      fetchedAt: print(this.#fetchedAtMs),
      expiresAt: print(this.#expiresAtMs),
      lastError: this.#lastError ?? null,
    };
  }
}

/** Returns for each block the row that was fetched last: threads fetch for each other, and blocks are replaced. */
export function newestRows(rows: readonly CredentialDump[]): CredentialDump[] {
  const newest = new Map<string, CredentialDump>();
  for (const row of rows) {
    const name = `${row.kind} ${row.place}`;
    const known = newest.get(name);
    if (known === undefined || (row.fetchedAt ?? "") > (known.fetchedAt ?? "")) newest.set(name, row);
  }
  return [...newest.values()];
}

const MAX_DATE_MS = 8.64e15;

/** The end of a token may lie beyond what a date can express. */
function print(ms: number | undefined): string | null {
  return ms === undefined || Math.abs(ms) > MAX_DATE_MS ? null : new Date(ms).toISOString();
}
