/**
 * Follows documents on other servers that objects name, such as JWKS. runtime/remote-jwks.ts uses it. Each document is
 * fetched once, kept, and fetched again when it is older than its cache time. A failed fetch is repeated with
 * exponential backoff, and the last good document stays in use. It does not interpret the documents.
 *
 * Each key has one `Followed`, which has either a fetch in progress or a timer for the next one, never both:
 *
 *   start ──▶ fetch ──ok────▶ deliver ──(cacheMs)──▶ fetch
 *              ▲  └──failed──▶ keep the last text ──(backoff)──▶ fetch, at the next address
 *              └─────────────── at once, when the addresses change after a failure
 */
import type { BackendTls } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { createBackoff, type Backoff } from "../../lib/time/backoff.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { deepEqual } from "../../lib/deep-equal.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";

export interface DocumentAddress {
  readonly host: string;
  readonly port: number;
  /** Path of a unix socket that replaces host and port; "" for TCP. */
  readonly unixPath: string;
  /**
   * Refuses loopback and link-local addresses, whatever name resolves to them. This guards against server-side request
   * forgery through DNS.
   */
  readonly isRemote?: boolean;
}

export interface JwksRequest {
  /** Key that is equal for the same URL and the same TLS settings. */
  readonly key: string;
  readonly url: string;
  /** undefined for plain HTTP. */
  readonly tls: BackendTls | undefined;
  /** Current addresses of the server; empty when it has no endpoint that is ready. */
  readonly addresses: readonly DocumentAddress[];
  /** How long the document may be used before it is fetched again. */
  readonly cacheMs: number;
  /**
   * `connectTimeoutMs` limits the time until the connection can be used, `timeoutMs` the time until the last byte;
   * unset for the defaults of fetch-document.ts.
   */
  readonly connectTimeoutMs?: number | undefined;
  readonly timeoutMs?: number | undefined;
}

/** A document that was fetched, or the reason why it could not be. */
export type JwksDocument = { readonly text: string } | { readonly error: string };

export interface StoredDocument {
  readonly text: string;
  readonly fetchedAtMs: number;
}

/**
 * Keeps documents over restarts. The store reports its own failures: a document that could not be kept is only fetched
 * again.
 */
export interface DocumentStore {
  /** Returns the kept documents by key. */
  load(): Promise<ReadonlyMap<string, StoredDocument>>;
  save(wanted: JwksRequest, document: StoredDocument): void;
  remove(key: string): void;
}

export interface DocumentOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /**
   * Fetches a document.
   * @throws an error whose message may be shown in a status
   */
  readonly fetch: (wanted: JwksRequest, address: DocumentAddress, signal: AbortSignal) => Promise<string>;
  /** @returns what is wrong with a fetched text; undefined when it can be used */
  readonly findError: (text: string) => string | undefined;
  /** Receives each new document, and undefined for a key that is no longer wanted. */
  readonly deliver: (key: string, document: JwksDocument | undefined) => void;
  readonly stored: ReadonlyMap<string, StoredDocument>;
  readonly store?: Pick<DocumentStore, "save" | "remove">;
  readonly random?: () => number;
}

export interface Documents {
  /** Replaces the list of wanted documents. */
  want(documents: readonly JwksRequest[]): void;
  stop(): void;
}

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 15_000;
/** Limit of concurrent fetches. */
const MAX_FETCHES = 16;
/** Lower limit of the cache time, to protect the server of a document. */
const MIN_CACHE_MS = 1_000;

export function createDocuments(options: DocumentOptions): Documents {
  const followed = new Map<string, Followed>();
  const turns = createTurns(MAX_FETCHES);
  return {
    want(documents) {
      const wanted = merged(documents);
      for (const [key, one] of followed) {
        if (wanted.has(key)) continue;
        followed.delete(key);
        one.stop();
        options.store?.remove(key);
        options.deliver(key, undefined);
      }
      for (const [key, document] of wanted) {
        const one = followed.get(key);
        if (one !== undefined) one.update(document);
        else {
          const started = new Followed(document, options, turns);
          followed.set(key, started);
          started.start(options.stored.get(key));
        }
      }
    },
    stop() {
      for (const one of followed.values()) one.stop();
      followed.clear();
    },
  };
}

/** Merges requests for the same key; the shortest cache time wins. */
function merged(documents: readonly JwksRequest[]): Map<string, JwksRequest> {
  const found = new Map<string, JwksRequest>();
  for (const document of documents) {
    const cacheMs = Math.max(MIN_CACHE_MS, Math.min(document.cacheMs, found.get(document.key)?.cacheMs ?? Infinity));
    found.set(document.key, { ...document, cacheMs });
  }
  return found;
}

/** One document with its fetch or its timer; see the diagram above. */
class Followed {
  #wanted: JwksRequest;
  readonly #options: DocumentOptions;
  readonly #backoff: Backoff;
  readonly #turns: Turns;
  readonly #stopping = new AbortController();
  #cancelTimer: () => void = () => undefined;
  #isFetching = false;
  #failures = 0;
  #text: string | undefined;
  #error: string | undefined;
  #fetchedAtMs = 0;

  constructor(wanted: JwksRequest, options: DocumentOptions, turns: Turns) {
    this.#wanted = wanted;
    this.#turns = turns;
    this.#options = options;
    const { random } = options;
    const times = { initialMs: FIRST_RETRY_MS, maxMs: LAST_RETRY_MS };
    this.#backoff = createBackoff(random === undefined ? times : { ...times, random });
  }

  start(stored: StoredDocument | undefined): void {
    if (stored === undefined || this.#options.findError(stored.text) !== undefined) {
      void this.#fetch();
      return;
    }
    this.#text = stored.text;
    this.#fetchedAtMs = stored.fetchedAtMs;
    this.#options.deliver(this.#wanted.key, { text: stored.text });
    this.#schedule(this.#untilStale());
  }

  update(wanted: JwksRequest): void {
    const before = this.#wanted;
    if (deepEqual(before, wanted)) return;
    this.#wanted = wanted;
    if (this.#isFetching) return;
    // A server that has moved or just appeared is worth a try at once.
    if (this.#failures > 0 && !deepEqual(before.addresses, wanted.addresses)) this.#schedule(0);
    else if (this.#failures === 0 && before.cacheMs !== wanted.cacheMs) this.#schedule(this.#untilStale());
  }

  stop(): void {
    this.#cancelTimer();
    this.#stopping.abort();
  }

  #untilStale(): number {
    return Math.max(0, this.#fetchedAtMs + this.#wanted.cacheMs - this.#options.clock.now());
  }

  #schedule(delayMs: number): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#options.clock.after(delayMs, () => void this.#fetch());
  }

  async #fetch(): Promise<void> {
    const { log, fetch, findError } = this.#options;
    this.#cancelTimer();
    this.#isFetching = true;
    await this.#turns.take();
    const wanted = this.#wanted;
    try {
      this.#stopping.signal.throwIfAborted();
      const { addresses } = wanted;
      const address = addresses[this.#failures % Math.max(1, addresses.length)];
      if (address === undefined) throw new Error("the server has no address that is ready");
      const text = await fetch(wanted, address, this.#stopping.signal);
      const error = findError(text);
      if (error !== undefined) throw new Error(error);
      if (!this.#stopping.signal.aborted) this.#succeed(text);
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      log.warn("a document cannot be fetched", { url: wanted.url, error: messageOf(error) });
      this.#fail(messageOf(error));
    } finally {
      this.#turns.give();
      this.#isFetching = false;
    }
  }

  #succeed(text: string): void {
    const { clock, deliver, store } = this.#options;
    const { key } = this.#wanted;
    this.#failures = 0;
    this.#backoff.reset();
    this.#fetchedAtMs = clock.now();
    store?.save(this.#wanted, { text, fetchedAtMs: this.#fetchedAtMs });
    if (text !== this.#text) deliver(key, { text });
    this.#text = text;
    this.#error = undefined;
    this.#schedule(this.#wanted.cacheMs);
  }

  #fail(error: string): void {
    this.#failures++;
    if (this.#text === undefined && error !== this.#error) this.#options.deliver(this.#wanted.key, { error });
    this.#error = error;
    this.#schedule(this.#backoff.next());
  }
}

interface Turns {
  /** Resolves when a slot is free. */
  take(): Promise<void>;
  give(): void;
}

/**
 * Returns a counting semaphore: at most `most` holders, the others wait in order of arrival. `give` passes the slot
 * directly to the next waiter, so the count stays the same.
 */
function createTurns(most: number): Turns {
  const waiting: (() => void)[] = [];
  let taken = 0;
  return {
    async take() {
      if (taken >= most) await new Promise<void>((resolve) => waiting.push(resolve));
      else taken++;
    },
    give() {
      const next = waiting.shift();
      if (next === undefined) taken--;
      else next();
    },
  };
}
