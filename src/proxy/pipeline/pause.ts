/** Waits without holding anything up; the end of the exchange (client gone, deadline) ends the wait with its error. */
import type { RoutedExchange } from "./exchange.ts";

/** The longest wait of a timer; one more would fire at once. */
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
