/**
 * Cross-origin resource sharing (Fetch standard §3.3, Gateway API CORS filter GEP-1767): answers preflights, and marks
 * every other response with the origin that may read it. It runs before authentication, because preflights carry no
 * credentials and a browser must be able to read a rejection. Its headers replace those of the upstream.
 */
import type { Cors } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../lib/errors.ts";
import { HeaderList } from "../../lib/header-list.ts";
import type { Exchange, Reply } from "../exchange/exchange.ts";
import { type Origin, originText, parseOrigin } from "./shared/origin.ts";
import type { Policy } from "./policy.ts";

export const cors: Policy<Cors> = {
  compile(spec) {
    const isAllowed = compileOrigins(spec.allowOrigins);
    const exposed = spec.exposeHeaders.join(", ");

    function mark(headers: HeaderList, origin: string): void {
      headers.set("access-control-allow-origin", origin);
      // An upstream that allows credentials must not widen the policy.
      if (spec.allowCredentials) headers.set("access-control-allow-credentials", "true");
      else headers.remove("access-control-allow-credentials");
      if (exposed === "") headers.remove("access-control-expose-headers");
      else headers.set("access-control-expose-headers", exposed);
      if (!varies(headers)) headers.add("vary", "Origin");
    }

    function preflight(exchange: Exchange, origin: string): Reply {
      const { requestHeaders } = exchange;
      const headers = new HeaderList();
      mark(headers, origin);
      const methods = listOf(spec.allowMethods, requestHeaders.get("access-control-request-method"), spec);
      if (methods !== "") headers.set("access-control-allow-methods", methods);
      const asked = requestHeaders.getAll("access-control-request-headers").join(", ");
      const names = listOf(spec.allowHeaders, asked === "" ? undefined : asked, spec);
      if (names !== "") headers.set("access-control-allow-headers", names);
      headers.set("access-control-max-age", String(spec.maxAgeSeconds));
      return { status: 200, headers, body: null, upstream: false };
    }

    return function cors(exchange, next) {
      const origin = exchange.requestHeaders.get("origin");
      if (origin === undefined) return next();
      if (!isAllowed(origin)) return isPreflight(exchange) ? empty() : next();
      exchange.allowedOrigin = origin;
      if (exchange.method === "OPTIONS") return preflight(exchange, origin);
      const reply = next();
      return reply instanceof Promise ? reply.then(marked) : marked(reply);

      function marked(answer: Reply): Reply {
        mark(answer.headers, origin as string); // only reached with an origin
        return answer;
      }
    };
  },
};

function empty(): Reply {
  return { status: 200, headers: new HeaderList(), body: null, upstream: false };
}

function isPreflight({ method, requestHeaders }: Exchange): boolean {
  return method === "OPTIONS" && (requestHeaders.get("access-control-request-method") ?? "") !== "";
}

function varies(headers: HeaderList): boolean {
  return headers
    .getAll("vary")
    .flatMap((value) => value.split(","))
    .some((name) => name.trim() === "*" || name.trim().toLowerCase() === "origin");
}

/** "*" echoes the requested names: with credentials a browser does not accept the literal star (Fetch §3.3.4). */
function listOf(allowed: readonly string[], asked: string | undefined, { allowCredentials }: Cors): string {
  if (!allowed.includes("*")) return allowed.join(", ");
  return asked ?? (allowCredentials ? "" : "*");
}

/** @throws ConfigError for a pattern that is not an origin */
function compileOrigins(patterns: readonly string[]): (origin: string) => boolean {
  if (patterns.includes("*")) return () => true;
  const exact = new Set<string>();
  const wild: Origin[] = [];
  for (const pattern of patterns) {
    const parsed = parseOrigin(pattern);
    if (parsed === undefined) throw new ConfigError(`allowOrigins: ${pattern} is no origin`);
    if (parsed.host.includes("*")) wild.push({ ...parsed, host: suffixOf(parsed.host, pattern) });
    else exact.add(originText(parsed));
  }
  return (text) => {
    const origin = parseOrigin(text);
    if (origin === undefined) return false;
    return (
      exact.has(originText(origin)) ||
      wild.some(
        ({ scheme, host, port }) =>
          scheme === origin.scheme &&
          port === origin.port &&
          origin.host.length > host.length &&
          origin.host.endsWith(host),
      )
    );
  };
}

/** Maps "*" to "" and "*.example.com" to ".example.com": the suffix that follows at least one character of the host. */
function suffixOf(host: string, pattern: string): string {
  const suffix = host.slice(1);
  if (host.startsWith("*") && !suffix.includes("*") && (suffix === "" || suffix.startsWith("."))) return suffix;
  throw new ConfigError(`allowOrigins: a * in ${pattern} must stand for the whole host or its first labels`);
}
