/**
 * The main thread's part in fetching credentials: of all workers that miss one, the first is told to fetch, the others
 * wait for what it brings. What came is kept until its margin begins, so that a worker that asks later does not fetch
 * again.
 *
 *     worker 1 ──ask──▶ desk ──"fetch"──▶ worker 1 ──fetched──▶ desk ──token──▶ workers 1 … n
 *     worker 2 ──ask──▶  (waits)  ──────────────────────────────────────────────────▲
 *
 * When the thread that fetches dies, the next one that waits is told to fetch.
 */
import { RecentMap } from "../../lib/recent-map.ts";
import { monotonicMs } from "../../lib/time/monotonic.ts";
import type { FetchedToken, TokenRequest } from "../tokens/token.ts";
import type { FetchOutcome, TokenAnswer } from "./protocol.ts";

/** As many as the largest cache of a worker has by default. */
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

export class TokenDesk {
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
    // The thread was taken for dead, and another one fetches.
    if (flight?.thread !== thread) return;
    this.#flights.delete(key);
    if (outcome.case === "token") {
      const usableUntilMs = outcome.token.expiresAtMs - flight.marginMs;
      if (usableUntilMs > this.#nowMs()) this.#kept.set(key, { token: outcome.token, usableUntilMs });
    }
    for (const { answer } of flight.waiting) answer(outcome);
  }

  /** Hands the fetches of a thread that has ended to others that wait. */
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
