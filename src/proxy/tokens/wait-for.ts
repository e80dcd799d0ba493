/**
 * Waits for work that others share: an abort of the exchange ends the wait with its error, and not the work. Requests
 * that wait for a token use it.
 */
import type { RoutedExchange } from "../exchange/exchange.ts";

export function waitFor<T>(exchange: Pick<RoutedExchange, "onAbort">, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    exchange.onAbort({ abort: reject });
    work.then(resolve, reject);
  });
}
