/**
 * Who may ask the admin server: people on this machine, directly. What a web page, a proxy or a gateway sends on is refused, and
 * a token is demanded where one is configured.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import { HTTPError, type H3Event } from "h3";

/** A page in someone's browser must not reach this server: by a name of its own (rebinding) or by a form. */
export function refuseForeign(event: H3Event): void {
  for (const [name] of event.req.headers)
    if (isForwarding(name)) throw new HTTPError({ status: 403, message: "forwarded requests are refused" });
  const host = event.req.headers.get("host") ?? "";
  if (!isOwnHost(host)) throw new HTTPError({ status: 403, message: "foreign host" });
  if (event.req.method !== "GET" && event.req.headers.get("origin") !== null)
    throw new HTTPError({ status: 403, message: "requests of web pages are refused" });
}

const FORWARDING: ReadonlySet<string> = new Set(["forwarded", "via", "cdn-loop", "x-real-ip"]);

/** Operators ask this server directly: what a proxy or gateway has passed on was sent by its client. */
function isForwarding(name: string): boolean {
  return FORWARDING.has(name) || name.startsWith("x-forwarded-");
}

/** The page says nothing about this process, and has to be there to ask for the token. */
export function requireToken(token: () => Promise<string>): (event: H3Event) => Promise<void> {
  return async ({ req, url }) => {
    if (url.pathname === "/" && req.method === "GET") return;
    const [, shown = ""] = /^Bearer +([^ ]+) *$/i.exec(req.headers.get("authorization") ?? "") ?? [];
    if (shown !== "" && isEqual(shown, await token())) return;
    const headers = { "www-authenticate": "Bearer" };
    throw new HTTPError({ status: 401, message: "the token of --admin-token-file is needed", headers });
  };
}

/** Takes the same time wherever the texts differ, and however long they are. */
function isEqual(shown: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return expected !== "" && timingSafeEqual(digest(shown), digest(expected));
}

/** An address or localhost: a rebinding page has a name. */
function isOwnHost(host: string): boolean {
  const name = host.replace(/:[0-9]+$/, "").replace(/^\[(.*)\]$/, "$1");
  return name.toLowerCase() === "localhost" || isIP(name) !== 0;
}
