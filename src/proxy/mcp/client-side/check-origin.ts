/**
 * Checks where a request to an MCP server comes from. A page that a browser shows may send requests to servers on the
 * user's machine or network by a name that it lets point there (DNS rebinding); such a request has a foreign Host or
 * Origin. The client side calls it before anything else.
 */
import { isIP } from "node:net";
import { AttributeMap } from "../../../cel/values.ts";
import { isLoopback, mappedBytes } from "../../../lib/network/local-address.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { originText, parseOrigin } from "../../policies/shared/origin.ts";

/** Loopback as clients name it, with any port. */
const LOOPBACK_NAME = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;
const WEB_SCHEME = /^https?:/i;

/** @throws McpError with status 403 */
export function checkOrigin(exchange: RoutedExchange): void {
  const { originalHost, requestHeaders, route } = exchange;
  const origins = requestHeaders.getAll("origin");
  if (route?.namesHost === false && isOnLoopback(exchange)) {
    if (!LOOPBACK_NAME.test(originalHost)) throw foreign("Host");
    for (const origin of origins) if (!LOOPBACK_NAME.test(hostOf(origin))) throw foreign("Origin");
    return;
  }
  for (const origin of origins) if (!isOwn(origin, originalHost, exchange.allowedOrigin)) throw foreign("Origin");
}

function isOwn(origin: string, host: string, allowed: string | undefined): boolean {
  if (origin === allowed) return true;
  // Desktop clients have schemes of their own; "null" is that of pages without an origin.
  if (!WEB_SCHEME.test(origin)) return origin !== "null";
  const parsed = parseOrigin(origin);
  const own = parsed === undefined ? undefined : parseOrigin(`${parsed.scheme}://${host}`);
  return parsed !== undefined && own !== undefined && originText(parsed) === originText(own);
}

function hostOf(origin: string): string {
  return origin.replace(/^https?:\/\//i, "");
}

/** The address that was looked at last: most requests come to the same one, and reading it takes a microsecond. */
let last = { address: "", isLoopback: false };

function isOnLoopback(exchange: Pick<RoutedExchange, "root">): boolean {
  const destination = exchange.root("destination");
  const address = destination instanceof AttributeMap ? destination.get("address") : undefined;
  if (typeof address !== "string") return false;
  if (address !== last.address) last = { address, isLoopback: isIP(address) !== 0 && isLoopback(mappedBytes(address)) };
  return last.isLoopback;
}

function foreign(field: string): McpError {
  return new McpError(ERROR_CODES.invalidRequest, `Forbidden: ${field} is not allowed`, { status: 403 });
}
