/**
 * Takes back what an attempt has changed of a request. Decisions that belong to one destination, such as those of
 * `extAuth` of a backend or of the traffic policies of an InferencePool, are made for each attempt: the next attempt may
 * go elsewhere, and logs must not show a credential that was made for this one.
 */
import type { RoutedExchange } from "./exchange.ts";

/** @returns a function that restores the request as it is now */
export function rememberRequest(exchange: RoutedExchange): () => void {
  const { method, target, host, hostChoice, scheme, requestHeaders, requestBody, tokenGates } = exchange;
  const fields = requestHeaders.raw.slice();
  const gates = tokenGates.length;
  return () => {
    requestHeaders.raw.splice(0, requestHeaders.raw.length, ...fields);
    tokenGates.splice(gates);
    Object.assign(exchange, { method, target, host, hostChoice, scheme });
    // A stream may have been read, so only a body in memory can be put back.
    if (Buffer.isBuffer(requestBody) && exchange.requestBody !== null) exchange.requestBody = requestBody;
  };
}
