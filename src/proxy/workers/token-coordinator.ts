/**
 * Coordinates the fetching of credentials on the main thread (singleflight across threads): of all workers that need
 * one credential, the first to ask fetches it, and the others wait for its result. A token is kept until its margin
 * begins, so that a worker that asks later does not fetch it again. WorkerPool has one, and `token-broker.ts` is the
 * side of the workers.
 *
 *     worker 1 ──ask──▶ coordinator ──"fetch"──▶ worker 1 ──fetched──▶ coordinator ──token──▶ workers 1 … n
 *     worker 2 ──ask──▶ (waits) ────────────────────────────────────────────────────────────────▲
 *
 * When the thread that fetches dies, the thread that has waited longest fetches in its place.
 */
import { RecentMap } from "../../lib/recent-map.ts";
import { monotonicMs } from "../../lib/time/monotonic.ts";
import type { FetchedToken, TokenRequest } from "../tokens/token.ts";
import type { FetchOutcome, TokenAnswer } from "./protocol.ts";

/** The default size of the largest cache that a worker has. */
const MAX_KEPT = 8_192;

interface Kept {
  readonly token: FetchedToken<unknown>;
  readonly usableUntilMs: number;
}

interface Waiter {
  readonly thread: number;
  answer(answer: TokenAnswer): void;
}

interface Flight {
  /** The thread that fetches. */
  thread: number;
  readonly marginMs: number;
  readonly waiting: Waiter[];
}

export class TokenCoordinator {
  readonly #kept = new RecentMap<string, Kept>(MAX_KEPT);
  readonly #flights = new Map<string, Flight>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = monotonicMs) {
    this.#nowMs = nowMs;
  }

  ask(thread: number, { key, marginMs, fetchedAfterMs }: TokenRequest): TokenAnswer | Promise<TokenAnswer> {
    const kept = this.#kept.get(key);
    if (kept !== undefined && this.#nowMs() < kept.usableUntilMs && kept.token.fetchedAtMs > (fetchedAfterMs ?? 0))
      return { case: "token", token: kept.token };
    const flight = this.#flights.get(key);
    if (flight === undefined) {
      this.#flights.set(key, { thread, marginMs, waiting: [] });
      return { case: "fetch" };
    }
    return new Promise((answer) => void flight.waiting.push({ thread, answer }));
  }

  fetched(thread: number, key: string, outcome: FetchOutcome): void {
    const flight = this.#flights.get(key);
    // The thread has been replaced meanwhile, and another one fetches.
    if (flight?.thread !== thread) return;
    this.#flights.delete(key);
    if (outcome.case === "token") {
      const usableUntilMs = outcome.token.expiresAtMs - flight.marginMs;
      if (usableUntilMs > this.#nowMs()) this.#kept.set(key, { token: outcome.token, usableUntilMs });
    }
    for (const { answer } of flight.waiting) answer(outcome);
  }

  /** Lets a waiting thread continue each fetch of a thread that has ended. */
  forget(thread: number): void {
    for (const [key, flight] of this.#flights) {
      const waiting = flight.waiting.filter((waiter) => waiter.thread !== thread);
      flight.waiting.splice(0, Infinity, ...waiting);
      if (flight.thread !== thread) continue;
      const next = flight.waiting.shift();
      if (next === undefined) this.#flights.delete(key);
      else {
        flight.thread = next.thread;
        next.answer({ case: "fetch" });
      }
    }
  }
}
