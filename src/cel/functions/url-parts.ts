/**
 * Splits URLs by the rules of Go's net/url, which the Kubernetes API server uses; url.ts builds its values on it. Go
 * accepts more than a browser, such as `http://256.0.0.1/` and `mailto:x`, and rejects some that a browser accepts,
 * such as `http://a b/`.
 */
import { isIP } from "node:net";

export interface UrlParts {
  /** Scheme in lower case; "" for a path. */
  readonly scheme: string;
  /** Host including the port. */
  readonly host: string;
  /** Path as written; "" after a scheme that no slash follows. */
  readonly path: string;
  readonly query: string;
}

const SCHEME = /^[a-zA-Z][a-zA-Z0-9+.-]*(?=:)/;
const BROKEN_ESCAPE = /%(?![0-9a-fA-F]{2})/;
const PORT = /^(?::\d*)?$/;
const USER = /^[\w.~!$&'()*+,;=%@:-]*$/;
/** Percent-encodings are allowed in a host only for bytes beyond ASCII, and for the percent sign of a zone. */
const HOST = /^(?:[\w.~!$&'()*+,;=:[\]<>"-]|\P{ASCII}|%25|%[89a-fA-F][0-9a-fA-F])*$/u;

/**
 * Tells whether the text is an absolute URL or an absolute path, as in a request line; "#" does not begin a fragment
 * there.
 */
export function isUrl(text: string): boolean {
  return split(text, true) !== undefined;
}

/** Returns the parts of a text that isUrl() accepts, without its fragment. @returns undefined when it is not a URL */
export function urlParts(text: string): UrlParts | undefined {
  if (!isUrl(text)) return undefined;
  const hash = text.indexOf("#");
  if (hash < 0) return split(text, false);
  return BROKEN_ESCAPE.test(text.slice(hash)) ? undefined : split(text.slice(0, hash), false);
}

/** @param isRequest whether two slashes at the start belong to the path */
function split(text: string, isRequest: boolean): UrlParts | undefined {
  if (text === "*") return { scheme: "", host: "", path: "*", query: "" };
  if (hasControl(text)) return undefined;
  const written = SCHEME.exec(text)?.[0] ?? "";
  const whole = written === "" ? text : text.slice(written.length + 1);
  const scheme = written.toLowerCase();
  const mark = whole.indexOf("?");
  const [rest, query] = mark < 0 ? [whole, ""] : [whole.slice(0, mark), whole.slice(mark + 1)];
  if (!rest.startsWith("/")) return scheme === "" ? undefined : { scheme, host: "", path: "", query };
  const hasAuthority = rest.startsWith("//") && (scheme !== "" || (!isRequest && !rest.startsWith("///")));
  const slash = hasAuthority ? rest.indexOf("/", 2) : 0;
  const end = slash < 0 ? rest.length : slash;
  const path = rest.slice(end);
  const host = hasAuthority ? hostOf(rest.slice(2, end)) : "";
  return host === undefined || BROKEN_ESCAPE.test(path) ? undefined : { scheme, host, path, query };
}

function hasControl(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20 || unit === 0x7f) return true;
  }
  return false;
}

/** @returns undefined when the authority is invalid */
function hostOf(authority: string): string | undefined {
  const at = authority.lastIndexOf("@");
  const user = authority.slice(0, Math.max(0, at));
  if (!USER.test(user) || BROKEN_ESCAPE.test(user)) return undefined;
  const host = authority.slice(at + 1);
  const open = host.lastIndexOf("[");
  if (open >= 0) return open === 0 ? bracketed(host) : undefined;
  // Several hosts with ports are accepted, as in connection strings of databases.
  const colon = host.lastIndexOf(":");
  if (colon >= 0 && !PORT.test(host.slice(colon))) return undefined;
  return HOST.test(host) ? unescaped(host) : undefined;
}

/** Reads an IPv6 address in brackets such as "[::1]:80", with or without a zone (RFC 6874). */
function bracketed(host: string): string | undefined {
  const close = host.lastIndexOf("]");
  if (close < 0 || !PORT.test(host.slice(close + 1))) return undefined;
  const [address = "", ...zones] = host.slice(1, close).split("%25");
  const zone = zones.join("%25");
  const isZoneSound = zones.length === 0 || (zone !== "" && isZone(zone));
  return isIP(address) === 6 && isZoneSound
    ? `[${unescaped(host.slice(1, close))}]${host.slice(close + 1)}`
    : undefined;
}

/**
 * Tells whether a zone is valid: a percent-encoded byte must be allowed in a host when it is not encoded, or be a
 * space.
 */
function isZone(zone: string): boolean {
  if (BROKEN_ESCAPE.test(zone) || !HOST.test(zone.replace(/%[0-9a-fA-F]{2}/g, ""))) return false;
  return (zone.match(/%[0-9a-fA-F]{2}/g) ?? []).every((escape) => {
    const byte = Number.parseInt(escape.slice(1), 16);
    return byte === 0x20 || byte === 0x25 || (byte < 0x80 && HOST.test(String.fromCharCode(byte)));
  });
}

function unescaped(text: string): string {
  return text.includes("%") ? bytesOf(text).toString() : text;
}

/** @param text contains only valid percent-encodings */
function bytesOf(text: string): Buffer {
  const parts = text.split(/%([0-9a-fA-F]{2})/);
  // split() returns the captured hex digits at the odd positions.
  return Buffer.concat(parts.map((part, at) => Buffer.from(part, at % 2 === 0 ? "utf8" : "hex")));
}

/** Characters allowed in a written path, and those that stay as they are when a path must be encoded anew. */
const WRITTEN_PATH = /^[\w.~$&+,/:;=@%!'()*[\]-]*$/;
const PLAIN_IN_PATH = /[\w.~$&+,/:;=@-]/;

/** Returns the path as written when that is a valid spelling, and encodes it anew otherwise. */
export function escapedPath(path: string): string {
  if (path === "*" || WRITTEN_PATH.test(path)) return path;
  return [...bytesOf(path)]
    .map((byte) => {
      const letter = String.fromCharCode(byte);
      return PLAIN_IN_PATH.test(letter) ? letter : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    })
    .join("");
}

/** Parses a query and skips its invalid pairs. */
export function queryOf(query: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const pair of query.split("&")) {
    if (pair === "" || pair.includes(";") || BROKEN_ESCAPE.test(pair)) continue;
    const equals = pair.indexOf("=");
    const [name, value] = equals < 0 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)];
    const key = unescaped(name.replaceAll("+", " "));
    const values = found.get(key);
    if (values === undefined) found.set(key, [unescaped(value.replaceAll("+", " "))]);
    else values.push(unescaped(value.replaceAll("+", " ")));
  }
  return found;
}
