/**
 * The head of a request as it arrived, checked and made ready to forward (RFC 9110 7.6.1, RFC 9112 3.2 and 6.3): what
 * belongs to the connection is gone, what the proxy knows better than the client is written anew. In doubt it refuses.
 */
import { randomUUID } from "node:crypto";
import { isIPv6 } from "node:net";
import { HeaderList } from "../../lib/header-list.ts";
import { ProxyError } from "../errors.ts";
import { ROLE, addNominated, dropNames, fieldOf, hasDotSegment, noteSpelling } from "../pipeline/fields.ts";
import { isLoop } from "../pipeline/cdn-loop.ts";
import type { Body } from "../pipeline/body.ts";
import type { ReceivedRequest } from "../pipeline/http-exchange.ts";
import { portOfAuthority } from "./preamble/authority-form.ts";
import type { Peer } from "./peer.ts";

/** The head of a request before it was looked at, whatever protocol it came by. */
export interface RequestHead {
  readonly method: string;
  /** As it was sent: path and query, an absolute form, or something worse. */
  readonly target: string;
  /** `:authority`; undefined where only a Host field can say it. */
  readonly authority: string | undefined;
  readonly version: string;
  /** Alternating names and values. */
  readonly fields: readonly string[];
  /** Where the protocol says so itself; undefined where the fields do (RFC 9112 6.3). */
  readonly isBodyless: boolean | undefined;
  /** The connection can leave HTTP. */
  readonly canUpgrade: boolean;
  /** CONNECT is matched to a route and not refused. */
  readonly canConnect: boolean;
  readonly maxFields: number;
  /** The names of fields are to leave as they came. */
  readonly keepsCase: boolean;
  /** As HTTP/2 counts them (RFC 9113 6.5.2); undefined where the parser has counted already. */
  readonly maxFieldBytes: number | undefined;
  /** Random name of this data plane, which CDN-Loop carries where clients choose destinations. */
  readonly replica: string;
}

const LENGTH = /^[0-9]{1,15}$/;
/** A name as DNS and routes know it, or an address. What else RFC 3986 allows in one only serves to be read differently. */
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
  /** Names and values of what a trusted peer says about its client; undefined: it is not trusted. */
  forwarding: string[] | undefined;
  nominated: Set<string> | undefined;
}

export interface Head {
  readonly arrival: Omit<ReceivedRequest, "body">;
  readonly hasBody: boolean;
  /** It went through here before, or through too many data planes. */
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
  // Methods are case-sensitive (RFC 9110 9.1), but not for every upstream: "get" would pass a rule about "GET".
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
  // The other way round it is an extended CONNECT for what would be HTTP again.
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
  const arrival = {
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
  return { arrival, hasBody, isLoop: found.cdnLoop !== undefined && isLoop(found.cdnLoop, head.replica) };
}

/** Names of one meaning become one: policies, routes and upstreams compare text (RFC 9110 4.2.3, RFC 1034 3.1). */
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

/** What a trusted peer said is kept, and told where it said nothing. */
function pushForwarding(raw: string[], said: readonly string[] | undefined, peer: Peer, host: string): void {
  const scheme = schemeOf(peer);
  const { localPort: port } = peer;
  if (said === undefined || said.length === 0) {
    raw.push("x-forwarded-proto", scheme, "x-forwarded-host", host, "x-forwarded-port", port);
    return;
  }
  raw.push(...said);
  const names = said.filter((_text, at) => at % 2 === 0);
  if (!names.includes("x-forwarded-proto")) raw.push("x-forwarded-proto", scheme);
  if (!names.includes("x-forwarded-host")) raw.push("x-forwarded-host", host);
  if (!names.includes("x-forwarded-port")) raw.push("x-forwarded-port", port);
}

export function receivedRequestOf(head: Head, body: Body): ReceivedRequest {
  return { ...head.arrival, body };
}

/** Never undefined: the answer is to keep its names too. */
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
  // Host leads, as it does in every request; its value is known when all fields are read.
  const out: string[] = ["host", ""];
  for (let at = 0; at < raw.length; at += 2) {
    const field = fieldOf(raw[at] as string);
    if (field === undefined) throw invalid("malformed header name");
    const value = raw[at + 1] as string;
    if (field.role === ROLE.plain) out.push(field.name, value);
    else readSpecial(field, value, found, out);
  }
  if (found.nominated !== undefined) dropNames(out, found.nominated);
  return out;
}

function readSpecial(field: { name: string; role: number }, value: string, found: Found, out: string[]): void {
  switch (field.role) {
    case ROLE.connection:
      addNominated(value, (found.nominated ??= new Set()));
      return;
    case ROLE.contentLength:
      if (found.contentLength !== undefined || !LENGTH.test(value)) throw invalid("malformed content-length");
      found.contentLength = value;
      out.push(field.name, value);
      return;
    case ROLE.transferEncoding:
      if (found.chunked || value.toLowerCase() !== "chunked") throw invalid("unsupported transfer-encoding");
      found.chunked = true;
      return;
    case ROLE.host:
      if (found.host !== undefined) throw invalid("more than one host");
      found.host = value;
      return;
    case ROLE.te:
      found.trailers ||= value
        .toLowerCase()
        .split(/[,;]/)
        .some((part) => part.trim() === "trailers");
      return;
    case ROLE.upgrade:
      found.upgrade = value;
      return;
    case ROLE.proxyAuthorization:
      (found.proxyAuthorization ??= []).push(value);
      return;
    case ROLE.forwardedFor:
      found.forwardedFor = found.forwardedFor === undefined ? value : `${found.forwardedFor}, ${value}`;
      return;
    case ROLE.forwarding:
      found.forwarding?.push(field.name, value);
      return;
    case ROLE.requestId:
      if (found.requestId === undefined && REQUEST_ID.test(value)) found.requestId = value;
      return;
    case ROLE.cdnLoop:
      found.cdnLoop = found.cdnLoop === undefined ? value : `${found.cdnLoop}, ${value}`;
      out.push(field.name, value);
      return;
    default:
      return;
  }
}

function isUpgrade({ upgrade, nominated }: Found): boolean {
  return upgrade !== undefined && nominated?.has("upgrade") === true && !isOffer(upgrade);
}

/** An upgrade to HTTP/2 is only an offer and may be ignored; any other protocol is for the upstream to speak. */
export function isOffer(upgrade: string): boolean {
  return upgrade.split(",").every((protocol) => /^\s*(?:h2c|HTTP\/2(?:\.0)?|TLS\/.*)\s*$/i.test(protocol));
}

/** The only thing that CONNECT names is where to (RFC 9110 9.3.6); routes match it at "/". */
function connectTarget({ target, authority = target }: RequestHead): { target: string; authority: string } {
  if (portOfAuthority(authority) === undefined) throw invalid("CONNECT without host and port");
  return { target: "/", authority };
}

/** Path and query; the authority of an absolute form, which beats Host (RFC 9112 3.2.2). */
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
  // Matching goes by the path as received, so a path that means another one to the upstream is refused.
  if (hasDotSegment(target)) throw invalid("dot segment in the path");
  return target;
}

function invalid(detail: string): ProxyError {
  return new ProxyError("request_invalid", { detail });
}

/** What can be said about a request whose head was refused: its method, and whether it wants its refusal as gRPC. */
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

/** What the client calls its request, so that it finds the line of the log although its head was refused. */
function requestIdOf(fields: readonly string[]): string | undefined {
  for (let at = 0; at < fields.length; at += 2) {
    const value = fields[at + 1] as string;
    if (fields[at]?.toLowerCase() === "x-request-id" && REQUEST_ID.test(value)) return value;
  }
  return undefined;
}
