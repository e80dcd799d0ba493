/** Holds the body of a request that is signed, because a signature covers all of it. */
import type { Body } from "../../exchange/body.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";

const EMPTY = Buffer.alloc(0);

/**
 * @param body of the request that leaves: that of the exchange, or one that is held already
 * @throws ProxyError body_too_large
 */
export async function bodyToSign(exchange: RoutedExchange, body: Body): Promise<Buffer> {
  if (body === null) return EMPTY;
  if (Buffer.isBuffer(body)) return body;
  const held = await exchange.bufferRequestBody(exchange.requestLimitBytes);
  if (held === undefined) throw new ProxyError("body_too_large", { text: "request body too large to sign" });
  return held;
}
