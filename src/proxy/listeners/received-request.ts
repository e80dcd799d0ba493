/**
 * Parses and validates the head of a request for `startRequest`, and prepares the headers that are forwarded.
 *
 * Header by header: hop-by-hop fields and those that Connection names go (RFC 9110 §7.6.1); host, x-forwarded-* and
 * x-request-id are rewritten; framing and target follow RFC 9112 §3.2 and §6.3. The danger is request smuggling: when
 * the upstream reads the length, the host or the path in another way than we do, it serves a request that no policy has
 * seen. Anything ambiguous is therefore refused, never repaired (both Content-Length and Transfer-Encoding, two Host
 * fields, dot segments, Host and :authority that differ). One pass reads each field by the role of its name
 * (exchange/fields.ts, `READERS`) and collects into `Found`; the checks run after all fields are read.
 */
import { randomUUID } from "node:crypto";
import { isIPv6 } from "node:net";
import { HeaderList } from "../../lib/header-list.ts";
import { ProxyError } from "../exchange/errors.ts";
import { ROLE, addNominated, dropNames, fieldOf, hasDotSegment, noteSpelling } from "../exchange/fields.ts";
import { isLoop } from "../exchange/cdn-loop.ts";
import type { Body } from "../exchange/body.ts";
import type { ReceivedRequest } from "../pipeline/http-exchange.ts";
import { portOfAuthority } from "./preamble/authority-form.ts";
import type { Peer } from "./peer.ts";

/** The head of a request before validation, in one form for HTTP/1 and HTTP/2. */
export interface RequestHead {
  readonly method: string;
  /** The request target as sent: path and query, absolute form, or malformed. */
  readonly target: string;
  /** `:authority`; undefined for HTTP/1, where Host or the absolute form names the host. */
  readonly authority: string | undefined;
  readonly version: string;
  /** Alternating names and values. */
  readonly fields: readonly string[];
  /** Set by HTTP/2, which frames bodies itself; undefined for HTTP/1, where the fields decide (RFC 9112 §6.3). */
  readonly isBodyless: boolean | undefined;
  /** True when the connection can switch to another protocol. */
  readonly canUpgrade: boolean;
  /** True when CONNECT is matched to a route; otherwise it is refused. */
  readonly canConnect: boolean;
  readonly maxFields: number;
  /** Keeps the spelling of header names. */
  readonly keepsCase: boolean;
  /** Limit as HTTP/2 counts it (RFC 9113 §6.5.2); undefined for HTTP/1, where the parser enforces one. */
  readonly maxFieldBytes: number | undefined;
  /** Random name of this data plane; CDN-Loop (RFC 8586) carries it where clients choose the destination. */
  readonly replica: string;
}

const LENGTH = /^[0-9]{1,15}$/;
/**
 * A DNS name or an IP literal, with an optional port. RFC 3986 §3.2.2 allows more characters (percent-encoding,
 * sub-delimiters), but those only let two parsers disagree about the host.
 */
const HOST = /^(?:\[([0-9a-fA-F:.]+)\]|[A-Za-z0-9._-]+)(?::([0-9]{0,5}))?$/;
const SMALL_LETTER = /[a-z]/;
const LARGEST_PORT = 65_535;
const VERSIONS = new Set(["HTTP/1.0", "HTTP/1.1", "HTTP/2"]);
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;
const ABSOLUTE = /^(https?):\/\/([^/?#]+)(.*)$/i;

interface Found {
  host: string | undefined;
  forwardedFor: string | undefined;
  requestId: string | undefined;
  cdnLoop: string | undefined;
  contentLength: string | undefined;
  chunked: boolean;
  trailers: boolean;
  upgrade: string | undefined;
  proxyAuthorization: string[] | undefined;
  /** Forwarding headers of a trusted peer, alternating names and values; undefined when the peer is not trusted. */
  forwarding: string[] | undefined;
  /** Names that Connection lists, which are hop-by-hop. */
  nominated: Set<string> | undefined;
}

export interface Head {
  readonly received: Omit<ReceivedRequest, "body">;
  readonly hasBody: boolean;
  /** True when CDN-Loop shows that the request passed this data plane before, or too many of them. */
  readonly isLoop: boolean;
}

/** @throws ProxyError request_invalid, headers_too_large, method_not_allowed, upgrade_unsupported */
export function readHead(head: RequestHead, peer: Peer, bind: string): Head {
  const found: Found = {
    host: undefined,
    forwardedFor: undefined,
    requestId: undefined,
    cdnLoop: undefined,
    contentLength: undefined,
    chunked: false,
    trailers: false,
    upgrade: undefined,
    proxyAuthorization: undefined,
    forwarding: peer.trusted ? [] : undefined,
    nominated: undefined,
  };
  if (head.maxFieldBytes !== undefined && listSize(head.fields) > head.maxFieldBytes)
    throw new ProxyError("headers_too_large");
  if (!VERSIONS.has(head.version)) throw invalid("unsupported version of HTTP");
  // Methods are case-sensitive (RFC 9110 §9.1), but some upstreams ignore case: "get" would pass a rule about "GET".
  if (SMALL_LETTER.test(head.method)) throw invalid("method in small letters");
  const connect = head.method === "CONNECT";
  if (connect && !head.canConnect) throw new ProxyError("method_not_allowed");
  if (head.fields.length > head.maxFields * 2) throw new ProxyError("headers_too_large");
  const raw = readFields(head.fields, found);
  const { target, authority } = connect ? connectTarget(head) : splitTarget(head.target);
  const named = authority ?? head.authority ?? found.host;
  const host = named === undefined ? "" : normalizeHost(named);
  if (!isHost(host)) throw invalid("no valid host");
  if (found.chunked && found.contentLength !== undefined) throw invalid("both content-length and transfer-encoding");
  if (head.authority !== undefined && (found.host ?? head.authority) !== head.authority)
    throw invalid("host and :authority differ");
  if (found.chunked && head.version === "HTTP/1.0") throw invalid("transfer-encoding in HTTP/1.0");
  const upgrade = connect || head.version === "HTTP/1.0" || !isUpgrade(found) ? undefined : found.upgrade;
  // The reverse case is an extended CONNECT (RFC 8441) whose protocol is HTTP again.
  if (upgrade === undefined ? head.canUpgrade && !connect : !head.canUpgrade)
    throw new ProxyError("upgrade_unsupported");
  const requestId = found.requestId ?? randomUUID();
  const scheme = schemeOf(peer);
  raw[1] = host;
  const forwardedFor = found.forwardedFor === undefined ? peer.address : `${found.forwardedFor}, ${peer.address}`;
  raw.push("x-forwarded-for", forwardedFor);
  pushForwarding(raw, found.forwarding, peer, host);
  raw.push("x-request-id", requestId);
  if (found.trailers) raw.push("te", "trailers");
  const length = found.contentLength === undefined ? undefined : Number(found.contentLength);
  const framed = found.chunked || (length ?? 0) > 0;
  if (connect && framed) throw invalid("CONNECT with a body");
  const hasBody = !connect && (head.isBodyless === undefined ? framed : !head.isBodyless);
  const received = {
    method: head.method,
    target,
    host,
    scheme,
    version: head.version,
    headers: new HeaderList(raw, head.keepsCase ? spellingOf(head.fields) : undefined),
    contentLength: length ?? (hasBody ? undefined : 0),
    requestId,
    upgrade,
    connect,
    takenForProxy: !connect && authority !== undefined,
    source: peer,
    serverName: peer.serverName,
    bind,
    proxyAuthorization: found.proxyAuthorization,
    cdnLoop: found.cdnLoop,
  } as const;
  return { received, hasBody, isLoop: found.cdnLoop !== undefined && isLoop(found.cdnLoop, head.replica) };
}

/**
 * Maps equivalent host names to one spelling, lower case and without the final dot (RFC 9110 §4.2.3, RFC 1034 §3.1),
 * because policies, routes and upstreams compare text.
 */
function normalizeHost(text: string): string {
  const lower = text.toLowerCase();
  return lower.endsWith(".") || lower.includes(".:") ? lower.replace(/\.(?=:|$)/, "") : lower;
}

function isHost(text: string): boolean {
  if (text.endsWith(".") || text.includes(".:")) return false;
  const [whole, address, port = ""] = HOST.exec(text) ?? [];
  return whole !== undefined && (address === undefined || isIPv6(address)) && Number(port) <= LARGEST_PORT;
}

function schemeOf({ serverName }: Peer): "http" | "https" {
  return serverName === undefined ? "http" : "https";
}

/** Keeps the x-forwarded-* headers of a trusted peer and adds the missing ones. */
function pushForwarding(raw: string[], received: readonly string[] | undefined, peer: Peer, host: string): void {
  const scheme = schemeOf(peer);
  const { localPort: port } = peer;
  if (received === undefined || received.length === 0) {
    raw.push("x-forwarded-proto", scheme, "x-forwarded-host", host, "x-forwarded-port", port);
    return;
  }
  raw.push(...received);
  const names = received.filter((_text, at) => at % 2 === 0);
  if (!names.includes("x-forwarded-proto")) raw.push("x-forwarded-proto", scheme);
  if (!names.includes("x-forwarded-host")) raw.push("x-forwarded-host", host);
  if (!names.includes("x-forwarded-port")) raw.push("x-forwarded-port", port);
}

export function receivedRequestOf(head: Head, body: Body): ReceivedRequest {
  return { ...head.received, body };
}

/** Returns a map even when it is empty: its presence makes the response keep its spelling too. */
function spellingOf(fields: readonly string[]): ReadonlyMap<string, string> {
  const spelling = new Map<string, string>();
  for (let at = 0; at < fields.length; at += 2)
    noteSpelling(fields[at] as string, (fields[at] as string).toLowerCase(), spelling);
  return spelling;
}

const FIELD_OVERHEAD_BYTES = 32;

function listSize(fields: readonly string[]): number {
  return fields.reduce((size, text) => size + text.length, (fields.length / 2) * FIELD_OVERHEAD_BYTES);
}

function readFields(raw: readonly string[], found: Found): string[] {
  // Host comes first; its value is filled in when all fields are read.
  const out: string[] = ["host", ""];
  for (let at = 0; at < raw.length; at += 2) {
    const field = fieldOf(raw[at] as string);
    if (field === undefined) throw invalid("malformed header name");
    const value = raw[at + 1] as string;
    if (field.role === ROLE.plain) out.push(field.name, value);
    else READERS[field.role]?.(value, field.name, found, out);
  }
  if (found.nominated !== undefined) dropNames(out, found.nominated);
  return out;
}

/** Reads one field into `found`, and adds it to `out` when it is forwarded as it is. */
type FieldReader = (value: string, name: string, found: Found, out: string[]) => void;

/** What each role of a field name means here; a field whose role is not listed is dropped. */
const READERS: Readonly<Partial<Record<number, FieldReader>>> = {
  [ROLE.connection](value, _name, found) {
    addNominated(value, (found.nominated ??= new Set()));
  },
  [ROLE.contentLength](value, name, found, out) {
    if (found.contentLength !== undefined || !LENGTH.test(value)) throw invalid("malformed content-length");
    found.contentLength = value;
    out.push(name, value);
  },
  [ROLE.transferEncoding](value, _name, found) {
    if (found.chunked || value.toLowerCase() !== "chunked") throw invalid("unsupported transfer-encoding");
    found.chunked = true;
  },
  [ROLE.host](value, _name, found) {
    if (found.host !== undefined) throw invalid("more than one host");
    found.host = value;
  },
  [ROLE.te](value, _name, found) {
    found.trailers ||= value
      .toLowerCase()
      .split(/[,;]/)
      .some((part) => part.trim() === "trailers");
  },
  [ROLE.upgrade](value, _name, found) {
    found.upgrade = value;
  },
  [ROLE.proxyAuthorization](value, _name, found) {
    (found.proxyAuthorization ??= []).push(value);
  },
  [ROLE.forwardedFor](value, _name, found) {
    found.forwardedFor = found.forwardedFor === undefined ? value : `${found.forwardedFor}, ${value}`;
  },
  [ROLE.forwarding](value, name, found) {
    found.forwarding?.push(name, value);
  },
  [ROLE.requestId](value, _name, found) {
    if (found.requestId === undefined && REQUEST_ID.test(value)) found.requestId = value;
  },
  [ROLE.cdnLoop](value, name, found, out) {
    found.cdnLoop = found.cdnLoop === undefined ? value : `${found.cdnLoop}, ${value}`;
    out.push(name, value);
  },
};

function isUpgrade({ upgrade, nominated }: Found): boolean {
  return upgrade !== undefined && nominated?.has("upgrade") === true && !isOffer(upgrade);
}

/** Reports whether an upgrade only offers HTTP/2 or TLS, which a server may ignore (RFC 9110 §7.8). */
export function isOffer(upgrade: string): boolean {
  return upgrade.split(",").every((protocol) => /^\s*(?:h2c|HTTP\/2(?:\.0)?|TLS\/.*)\s*$/i.test(protocol));
}

/** Reads the target of CONNECT, which is an authority and nothing else (RFC 9110 §9.3.6); routes match it at "/". */
function connectTarget({ target, authority = target }: RequestHead): { target: string; authority: string } {
  if (portOfAuthority(authority) === undefined) throw invalid("CONNECT without host and port");
  return { target: "/", authority };
}

/**
 * Splits a target into path with query, and the authority of an absolute form, which overrides Host (RFC 9112 §3.2.2).
 */
function splitTarget(url: string): { target: string; authority: string | undefined } {
  if (!url.startsWith("/")) {
    const absolute = ABSOLUTE.exec(url);
    if (absolute === null) throw invalid("unsupported request target");
    const rest = absolute[3] as string;
    return { target: checked(rest.startsWith("/") ? rest : `/${rest}`), authority: absolute[2] as string };
  }
  return { target: checked(url), authority: undefined };
}

function checked(target: string): string {
  if (target.includes("#")) throw invalid("fragment in the request target");
  // Routes match the path as received, so refuse a path that the upstream would resolve to another one.
  if (hasDotSegment(target)) throw invalid("dot segment in the path");
  return target;
}

function invalid(detail: string): ProxyError {
  return new ProxyError("request_invalid", { detail });
}

/** Builds the request of a refused head: values for the log, and the content type, which decides about gRPC errors. */
export function rejectedRequestOf(
  { method, version, fields }: RequestHead,
  source: Peer,
  bind: string,
): ReceivedRequest {
  const { serverName } = source;
  return {
    method,
    target: "/",
    host: "",
    scheme: schemeOf(source),
    version,
    headers: new HeaderList(contentTypeOf(fields)),
    body: null,
    contentLength: undefined,
    requestId: requestIdOf(fields) ?? randomUUID(),
    upgrade: undefined,
    connect: false,
    takenForProxy: false,
    source,
    serverName,
    bind,
    proxyAuthorization: undefined,
    cdnLoop: undefined,
  };
}

function contentTypeOf(fields: readonly string[]): string[] {
  for (let at = 0; at < fields.length; at += 2)
    if (fields[at]?.toLowerCase() === "content-type") return ["content-type", fields[at + 1] as string];
  return [];
}

/** Returns the client's request id, so that the client finds the log line of a refused head. */
function requestIdOf(fields: readonly string[]): string | undefined {
  for (let at = 0; at < fields.length; at += 2) {
    const value = fields[at + 1] as string;
    if (fields[at]?.toLowerCase() === "x-request-id" && REQUEST_ID.test(value)) return value;
  }
  return undefined;
}
