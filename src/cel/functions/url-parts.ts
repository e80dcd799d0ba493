/**
 * Text → parts of a URL, with the rules of the library that the API server uses (Go's net/url): far more is a URL there
 * than in a browser, such as `http://256.0.0.1/` and `mailto:x`, and some things are not, such as `http://a b/`.
 */
import { isIP } from "node:net";

export interface UrlParts {
  /** In small letters; "" for a path. */
  readonly scheme: string;
  /** With the port. */
  readonly host: string;
  /** As it is written; "" behind a scheme that no slash follows. */
  readonly path: string;
  readonly query: string;
}

const SCHEME = /^[a-zA-Z][a-zA-Z0-9+.-]*(?=:)/;
const BROKEN_ESCAPE = /%(?![0-9a-fA-F]{2})/;
const PORT = /^(?::\d*)?$/;
const USER = /^[\w.~!$&'()*+,;=%@:-]*$/;
/** Escapes stand only for what is not ASCII, and for the percent sign of a zone. */
const HOST = /^(?:[\w.~!$&'()*+,;=:[\]<>"-]|\P{ASCII}|%25|%[89a-fA-F][0-9a-fA-F])*$/u;

/** An absolute URL or an absolute path, as the line of a request has it: a fragment is no fragment there. */
export function isUrl(text: string): boolean {
  return split(text, true) !== undefined;
}

/** The parts of what isUrl() takes, without its fragment. @returns undefined when it is no URL */
export function urlParts(text: string): UrlParts | undefined {
  if (!isUrl(text)) return undefined;
  const hash = text.indexOf("#");
  if (hash < 0) return split(text, false);
  return BROKEN_ESCAPE.test(text.slice(hash)) ? undefined : split(text.slice(0, hash), false);
}

/** @param isRequest two slashes at the start are part of a path */
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

/** @returns undefined when the authority is not sound */
function hostOf(authority: string): string | undefined {
  const at = authority.lastIndexOf("@");
  const user = authority.slice(0, Math.max(0, at));
  if (!USER.test(user) || BROKEN_ESCAPE.test(user)) return undefined;
  const host = authority.slice(at + 1);
  const open = host.lastIndexOf("[");
  if (open >= 0) return open === 0 ? bracketed(host) : undefined;
  // Several hosts with ports, as databases have them, are taken.
  const colon = host.lastIndexOf(":");
  if (colon >= 0 && !PORT.test(host.slice(colon))) return undefined;
  return HOST.test(host) ? unescaped(host) : undefined;
}

/** "[::1]:80": an address of the sixth version, with a zone or without. */
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

/** What an escape stands for must be allowed in a host without it; a space is allowed as well. */
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

/** @param text with sound escapes */
function bytesOf(text: string): Buffer {
  const parts = text.split(/%([0-9a-fA-F]{2})/);
  // Every second part is what the group of the separator took.
  return Buffer.concat(parts.map((part, at) => Buffer.from(part, at % 2 === 0 ? "utf8" : "hex")));
}

/** What may stand in a written path, and what of it stays as it is where something else has to be escaped. */
const WRITTEN_PATH = /^[\w.~$&+,/:;=@%!'()*[\]-]*$/;
const PLAIN_IN_PATH = /[\w.~$&+,/:;=@-]/;

/** As it is written when that is a sound spelling, and spelled anew otherwise. */
export function escapedPath(path: string): string {
  if (path === "*" || WRITTEN_PATH.test(path)) return path;
  return [...bytesOf(path)]
    .map((byte) => {
      const letter = String.fromCharCode(byte);
      return PLAIN_IN_PATH.test(letter) ? letter : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    })
    .join("");
}

/** Pairs that are not sound are left out. */
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
