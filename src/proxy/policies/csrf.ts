/**
 * Protects against cross-site request forgery: refuses state-changing requests that a browser marks as coming from
 * another site (Fetch Metadata, `Sec-Fetch-Site`, with `Origin` as fallback). A request with neither header is not from
 * a browser and passes.
 */
import type { Csrf } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../lib/errors.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { originText, parseOrigin } from "./shared/origin.ts";
import type { Policy } from "./policy.ts";

/** Matches origins of extensions and apps, such as "chrome-extension://abc". */
const OTHER_ORIGIN = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+$/i;
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

export const csrf: Policy<Csrf> = {
  compile({ additionalOrigins }) {
    const trusted = new Set(additionalOrigins.map(trustedOrigin));
    return function csrf(exchange, next) {
      if (SAFE_METHODS.has(exchange.method) || isSameSite(exchange, trusted)) return next();
      throw new ProxyError("csrf_rejected", { detail: exchange.requestHeaders.get("origin") ?? "no origin" });
    };
  },
};

function isSameSite(exchange: Exchange, trusted: ReadonlySet<string>): boolean {
  const { requestHeaders } = exchange;
  const origins = requestHeaders.getAll("origin");
  const sites = requestHeaders.getAll("sec-fetch-site");
  const areTrusted = (): boolean => origins.length > 0 && origins.every((origin) => trusted.has(comparable(origin)));
  if (sites.length > 0) return sites.every((site) => site === "same-origin" || site === "none") || areTrusted();
  if (origins.length === 0) return true;
  // Compares with the host that the browser spoke to: an earlier policy may have chosen another for the upstream.
  const own = comparable(`${exchange.originalScheme}://${exchange.originalHost}`);
  return own !== "" && (origins.every((origin) => comparable(origin) === own) || areTrusted());
}

/**
 * Normalises an origin. Returns "" for "null" and for text that is not an origin; "" equals no origin. Schemes without
 * a default port compare as text.
 */
function comparable(text: string): string {
  const origin = parseOrigin(text);
  if (origin !== undefined) return originText(origin);
  return OTHER_ORIGIN.test(text) ? text.toLowerCase() : "";
}

/** @throws ConfigError */
function trustedOrigin(text: string): string {
  const origin = comparable(text);
  if (origin === "") throw new ConfigError(`additionalOrigins: ${text} is no origin such as https://example.com`);
  return origin;
}
