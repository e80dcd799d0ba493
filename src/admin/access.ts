/**
 * Access control of the admin server. It is for people on the same machine, so requests that a web page, a proxy or a
 * gateway forwarded are refused, and a token is required when one is configured.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import type { H3Event } from "h3";
import { text } from "./http.ts";

/**
 * Refuses requests that a web page in the operator's browser could send: through a host name of its own (DNS rebinding),
 * from a form (CSRF), or as a link, an image or a `no-cors` fetch. A GET of the last three carries no Origin, and its
 * page cannot read the answer, but it would start a trace or a profile. Browsers say where such a request comes from
 * (Fetch Metadata, `Sec-Fetch-Site`); `none` is an address that the operator typed, and other clients send no such field.
 */
export function refuseForeign({ req: { method, headers } }: H3Event): Response | undefined {
  for (const [name] of headers)
    if (isForwarding(name)) return refused("forwarded requests are refused; connect directly, without a proxy");
  if (!isOwnHost(headers.get("host") ?? ""))
    return refused("this Host is refused; use localhost or an address, such as http://127.0.0.1:15000/");
  if (method !== "GET" && headers.get("origin") !== null)
    return refused("requests of web pages are refused; use gwproxy or curl");
  const site = headers.get("sec-fetch-site") ?? "none";
  if (site !== "none" && site !== "same-origin")
    return refused("requests of other web pages are refused; type the address into the browser");
  return undefined;
}

function refused(reason: string): Response {
  return text(`${reason}\n`, 403);
}

const FORWARDING: ReadonlySet<string> = new Set(["forwarded", "via", "cdn-loop", "x-real-ip"]);

/**
 * Operators connect directly: forwarding headers show that another client sent the request through a proxy or gateway.
 */
function isForwarding(name: string): boolean {
  return FORWARDING.has(name) || name.startsWith("x-forwarded-");
}

/**
 * Requires the token for every path except the page and its files, which show nothing about the process: the page asks
 * for the token.
 */
export function requireToken(
  token: () => Promise<string>,
  publicPaths: ReadonlySet<string>,
): (event: H3Event) => Promise<Response | undefined> {
  return async ({ req, url }) => {
    if (req.method === "GET" && publicPaths.has(url.pathname)) return undefined;
    const [, shown = ""] = /^Bearer +([^ ]+) *$/i.exec(req.headers.get("authorization") ?? "") ?? [];
    if (shown !== "" && isEqual(shown, await token())) return undefined;
    return text("send the token of --admin-token-file as Authorization: Bearer TOKEN\n", 401, {
      "www-authenticate": "Bearer",
    });
  };
}

/** Compares in constant time: digests have equal length, and timingSafeEqual does not stop at the first difference. */
function isEqual(shown: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return expected !== "" && timingSafeEqual(digest(shown), digest(expected));
}

/** Returns true for an IP address or localhost; a page that uses DNS rebinding has a name of its own. */
function isOwnHost(host: string): boolean {
  const name = host.replace(/:[0-9]+$/, "").replace(/^\[(.*)\]$/, "$1");
  return name.toLowerCase() === "localhost" || isIP(name) !== 0;
}
