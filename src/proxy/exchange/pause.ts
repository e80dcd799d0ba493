/**
 * Waits for a time without blocking; an abort of the exchange (client gone, deadline passed) rejects the wait with its
 * error. Used by `delay` and by the backoff between attempts.
 */
import type { RoutedExchange } from "./exchange.ts";

/** Longest delay that setTimeout accepts; it fires at once for a longer one. */
const LONGEST_MS = 2 ** 31 - 1;

export function pause(exchange: Pick<RoutedExchange, "onAbort">, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, Math.min(ms, LONGEST_MS));
    exchange.onAbort({
      abort(error) {
        clearTimeout(timer);
        reject(error);
      },
    });
  });
}
