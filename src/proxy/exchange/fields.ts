/**
 * Classifies header fields by what a proxy must do with them (RFC 9110 §7.6.1, RFC 9112 §6). Listeners, upstream
 * clients and callouts use it to decide what is forwarded.
 *
 * One map look-up per field returns its lower-case name, which is how it is sent, and its role. The map learns the
 * spellings that it sees, up to a bound of 4,096 names of at most 64 characters; without the bound, clients could fill
 * the memory with invented names.
 */

export const ROLE = {
  plain: 0,
  /** Belongs to one connection and is never forwarded. */
  hop: 1,
  connection: 2,
  contentLength: 3,
  transferEncoding: 4,
  host: 5,
  te: 6,
  upgrade: 7,
  /** Written anew by the proxy from the properties of the connection. */
  forwarding: 8,
  forwardedFor: 9,
  requestId: 10,
  expect: 11,
  keepAlive: 12,
  /** A credential for the proxy itself: policies read it, and it is never forwarded. */
  proxyAuthorization: 13,
  /** A challenge from a proxy to its client. */
  proxyChallenge: 14,
  /** Counted on arrival and written anew on every request that is sent. */
  cdnLoop: 15,
} as const;
type Role = (typeof ROLE)[keyof typeof ROLE];

export interface Field {
  /** In lower case. */
  readonly name: string;
  readonly role: Role;
}

const KNOWN: readonly [string, Role][] = [
  ["connection", ROLE.connection],
  ["proxy-connection", ROLE.hop],
  ["keep-alive", ROLE.keepAlive],
  ["proxy-authenticate", ROLE.proxyChallenge],
  ["proxy-authorization", ROLE.proxyAuthorization],
  ["te", ROLE.te],
  ["trailer", ROLE.hop],
  ["transfer-encoding", ROLE.transferEncoding],
  ["upgrade", ROLE.upgrade],
  ["http2-settings", ROLE.hop],
  ["content-length", ROLE.contentLength],
  ["host", ROLE.host],
  ["expect", ROLE.expect],
  ["x-forwarded-for", ROLE.forwardedFor],
  ["x-forwarded-proto", ROLE.forwarding],
  ["x-forwarded-host", ROLE.forwarding],
  ["x-forwarded-port", ROLE.forwarding],
  ["x-forwarded-client-cert", ROLE.forwarding],
  ["forwarded", ROLE.forwarding],
  ["x-request-id", ROLE.requestId],
  ["cdn-loop", ROLE.cdnLoop],
];
const MAX_REMEMBERED = 4096;
const LONGEST_REMEMBERED = 64;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/**
 * Matches characters that a field value must not contain: control characters and code points above one byte (RFC 9110
 * §5.5).
 */
const BAD_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

const seen = new Map<string, Field>(KNOWN.map(([name, role]) => [name, { name, role }]));

/** Returns undefined when the text is not a field name (RFC 9110 §5.1). */
export function fieldOf(name: string): Field | undefined {
  return seen.get(name) ?? learn(name);
}

function learn(name: string): Field | undefined {
  if (!TOKEN.test(name)) return undefined;
  const lower = name.toLowerCase();
  const field = seen.get(lower) ?? { name: lower, role: isImitation(lower) ? ROLE.hop : ROLE.plain };
  if (name.length <= LONGEST_REMEMBERED && seen.size < MAX_REMEMBERED) seen.set(name, field);
  return field;
}

/**
 * Frameworks that expose fields as variables read "transfer_encoding" as the real field (RFC 3875 §4.1.18). A name with
 * an underscore that imitates a special field is therefore dropped as hop-by-hop.
 */
function isImitation(name: string): boolean {
  if (!name.includes("_")) return false;
  const real = seen.get(name.replaceAll("_", "-"));
  return real !== undefined && real.role !== ROLE.plain;
}

/**
 * Matches characters that a path and query must not contain: white space, control characters and code points above one
 * byte.
 */
const BAD_TARGET = /[^\x21-\x7e\x80-\xff]/;

export function isRequestTarget(text: string): boolean {
  return !BAD_TARGET.test(text);
}

/**
 * Decides whether a policy may put the text in place of a path and query: visible ASCII that begins with a slash
 * (origin form, RFC 9112 §3.2.1), since other characters could split the request line.
 */
export function isOriginForm(text: string): boolean {
  return /^\/[\u0021-\u007e]*$/.test(text);
}

/**
 * A segment "." or ".." in a path (RFC 3986 §3.3), in every spelling that some server reads as one: upstreams turn "\"
 * into "/", unescape "%2f", "%5c" and "%2e" before they split, and cut parameters (";x=1") off a segment after they
 * have matched. The rules of a route and its policies see the path as it was sent, so they and the upstream would mean
 * different resources.
 */
const DOT_SEGMENT = /(?:[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:[/\\;]|%2f|%5c|%3b|$)/i;

/** @param target path and query; the query is data for the upstream and is not checked */
export function hasDotSegment(target: string): boolean {
  // Nearly every path has none of the characters that such a segment begins with: skip the regular expression.
  if (!target.includes("/.") && !target.includes("%") && !target.includes("\\")) return false;
  const query = target.indexOf("?");
  return DOT_SEGMENT.test(query < 0 ? target : target.slice(0, query));
}

export function isFieldValue(value: string): boolean {
  return !BAD_VALUE.test(value);
}

/**
 * Returns a value as it is sent, one character per byte. A policy can compute any text: what does not fit into bytes is
 * sent as UTF-8.
 * @returns undefined for a value with a control character: a line break would start another field
 */
export function encodeFieldValue(value: string): string | undefined {
  if (isFieldValue(value)) return value;
  const bytes = Buffer.from(value, "utf8").toString("latin1");
  return isFieldValue(bytes) ? bytes : undefined;
}

/**
 * Records how a name was written; the first spelling counts.
 * @returns the map, created when there is something to record
 */
export function noteSpelling(
  name: string,
  lower: string,
  into: Map<string, string> | undefined,
): Map<string, string> | undefined {
  if (name === lower || into?.has(lower) === true) return into;
  return (into ?? new Map<string, string>()).set(lower, name);
}

/** Names that a peer cannot remove by listing them in Connection: other parties rely on them. */
const NEVER_NOMINATED = new Set(["host", "authorization", "cookie", "content-length", "via", "cdn-loop"]);

/** Adds the field names that a Connection header lists (RFC 9110 §7.6.1). */
export function addNominated(value: string, into: Set<string>): void {
  for (const part of value.split(",")) {
    const name = part.trim().toLowerCase();
    if (name === "" || NEVER_NOMINATED.has(name) || name.startsWith("x-forwarded-")) continue;
    into.add(name);
  }
}

/** Removes, in place, the fields of the set from alternating names and values. Names are in lower case. */
export function dropNames(raw: string[], names: ReadonlySet<string>): void {
  let to = 0;
  for (let at = 0; at < raw.length; at += 2) {
    if (names.has(raw[at] as string)) continue;
    raw[to++] = raw[at] as string;
    raw[to++] = raw[at + 1] as string;
  }
  raw.length = to;
}

function isOfConnection(role: Role): boolean {
  switch (role) {
    case ROLE.hop:
    case ROLE.keepAlive:
    case ROLE.te:
    case ROLE.upgrade:
    case ROLE.proxyAuthorization:
    case ROLE.proxyChallenge:
      return true;
    default:
      return false;
  }
}

/**
 * Fields that must not appear in trailers, where no policy has seen them (RFC 9110 §6.5.1): routing, credentials,
 * conditions, and fields that change how the message is read. A peer that merges trailers into headers would treat them
 * as genuine.
 */
const NEVER_TRAILERS = new Set([
  "age",
  "authorization",
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-range",
  "content-type",
  "cookie",
  "date",
  "expires",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "location",
  "max-forwards",
  "pragma",
  "range",
  "retry-after",
  "set-cookie",
  "vary",
  "www-authenticate",
]);

export function isTrailer({ name, role }: Field): boolean {
  return role === ROLE.plain && !NEVER_TRAILERS.has(name);
}

/** Returns a copy without the fields that are allowed in the head only; names in lower case unless `keepsCase`. */
export function forwardableTrailers(raw: readonly string[], keepsCase = false): string[] {
  const out: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const field = fieldOf(raw[at] as string);
    if (field === undefined || !isTrailer(field)) continue;
    out.push(keepsCase ? (raw[at] as string) : field.name, raw[at + 1] as string);
  }
  return out;
}

/** Returns a copy without the fields that belong to one connection or to the framing of a body; names in lower case. */
export function forwardable(raw: readonly string[]): string[] {
  const out: string[] = [];
  let nominated: Set<string> | undefined;
  for (let at = 0; at < raw.length; at += 2) {
    const field = fieldOf(raw[at] as string);
    if (field === undefined) continue;
    const { role } = field;
    if (role === ROLE.connection) addNominated(raw[at + 1] as string, (nominated ??= new Set()));
    else if (!isOfConnection(role)) {
      if (role !== ROLE.contentLength && role !== ROLE.transferEncoding && role !== ROLE.expect)
        out.push(field.name, raw[at + 1] as string);
    }
  }
  if (nominated !== undefined) dropNames(out, nominated);
  return out;
}
