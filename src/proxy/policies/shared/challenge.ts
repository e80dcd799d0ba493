/**
 * Rejects a request that lacks a valid credential: 401 with WWW-Authenticate, or 407 with Proxy-Authenticate (RFC 9110
 * §11.6, §11.7).
 */
import { ProxyError, type ProxyErrorCode } from "../../exchange/errors.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import type { CompiledLocation } from "./credential-location.ts";

/** @param challenge scheme and parameters: constants and quoted strings, in which input of a client is escaped */
export function sendChallenge(
  exchange: Exchange,
  { forProxy }: CompiledLocation,
  challenge: string,
  error: { readonly code: ProxyErrorCode; readonly detail?: string; readonly json?: string },
): never {
  exchange.queuedHeaders.set(forProxy ? "proxy-authenticate" : "www-authenticate", challenge);
  throw new ProxyError(error.code, {
    ...(error.detail === undefined ? {} : { detail: error.detail }),
    ...(error.json === undefined ? {} : { json: error.json }),
    ...(forProxy ? { status: 407 } : {}),
  });
}

/** Challenges of bearer tokens (RFC 6750 §3), also used for API keys. */
export const BEARER_MISSING = "Bearer";
export const BEARER_INVALID = 'Bearer error="invalid_token"';
