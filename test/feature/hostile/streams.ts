/**
 * HTTP/2 requests that turn into something else when they are written as HTTP/1.1 (RFC 9113 10.3), or that are malformed
 * (8.1.1). Each row says what becomes of the stream and, byte for byte, what reaches the upstream.
 */
import { SHORT_PASSES, TOO_MANY_PASSES } from "./passes.ts";
import { DOT_SEGMENTS, NO_DOT_SEGMENTS } from "./dot-segments.ts";
import { sent, sentAfter } from "./hostile-request.ts";

/** A status; "reset": PROTOCOL_ERROR for the stream alone; "ended": the connection ends, with a code where there is one. */
type Outcome = number | "reset" | "ended";

export interface HostileStream {
  readonly name: string;
  /** Alternating names and values of the head. */
  readonly fields: readonly string[];
  readonly outcome: Outcome;
  readonly upstream: readonly string[];
  /** Where the end of the connection and the request are on their way at once. */
  readonly mayReach?: string;
  /** DATA behind the head. */
  readonly data?: string;
  /** A second field block behind everything. */
  readonly trailers?: readonly string[];
}

const CHUNKED = "transfer-encoding: chunked\r\n";
const METHOD = [":method", "GET"];
const REST = [":scheme", "http", ":authority", "a", ":path", "/"];
const HEAD = [...METHOD, ...REST];
const POST = [":method", "POST", ...REST];
const GET = sent("GET /");

const malformed = (name: string, fields: readonly string[], more: Partial<HostileStream> = {}): HostileStream => ({
  name,
  fields,
  outcome: "reset",
  upstream: [],
  ...more,
});
const refused = (name: string, fields: readonly string[], status = 400): HostileStream => ({
  name,
  fields,
  outcome: status,
  upstream: [],
});
const passed = (
  name: string,
  fields: readonly string[],
  upstream: string,
  more: Partial<HostileStream> = {},
): HostileStream => ({
  name,
  fields,
  outcome: 200,
  upstream: [upstream],
  ...more,
});
/** nghttp2 leaves out a field that cannot be one. */
const dropped = (name: string, fields: readonly string[]): HostileStream => passed(name, fields, GET);
const target = (path: string): string[] => [...METHOD, ":scheme", "http", ":authority", "a", ":path", path];
const authority = (name: string): string[] => [...METHOD, ":scheme", "http", ":authority", name, ":path", "/"];
const method = (name: string): string[] => [":method", name, ...REST];

const PSEUDO: readonly HostileStream[] = [
  malformed("no method", REST),
  malformed("no scheme", [...METHOD, ":authority", "a", ":path", "/"]),
  malformed("no path", [...METHOD, ":scheme", "http", ":authority", "a"]),
  malformed("an empty path", target("")),
  malformed("an empty method", method("")),
  malformed("two methods", [":method", "GET", ":method", "POST", ...REST]),
  malformed("two paths", [...HEAD, ":path", "/b"]),
  malformed("two schemes", [":scheme", "https", ...HEAD]),
  malformed("two authorities", [":authority", "b", ...HEAD]),
  malformed("a pseudo-field behind a field", [
    ...METHOD,
    ":scheme",
    "http",
    ":authority",
    "a",
    "x-a",
    "1",
    ":path",
    "/",
  ]),
  malformed("an unknown pseudo-field", [...HEAD, ":smuggled", "1"]),
  malformed("a pseudo-field of answers", [...HEAD, ":status", "200"]),
  malformed("a method with a line end", method("GET / HTTP/1.1\r\nHost: evil\r\n\r\nGET")),
  malformed("a method with a blank", method("GET /x")),
  malformed("a path with a line end", target("/ HTTP/1.1\r\nHost: evil\r\n\r\n")),
  malformed("a path with a blank", target("/a b")),
  malformed("a path with a NUL", target("/\0")),
  malformed("a path with a tab", target("/\t")),
  malformed("a path without a slash", target("a")),
  malformed("an asterisk for a GET", target("*")),
  malformed("an absolute path", target("http://evil/")),
  malformed("a scheme with a line end", [...METHOD, ":scheme", "http\r\n", ":authority", "a", ":path", "/"]),
  malformed("an authority with a line end", authority("a\r\nX-A: 1")),
  malformed("an authority with user data", authority("u@a")),
  malformed("an authority with a blank", authority("a b")),
  refused("a fragment", target("/a#b")),
  ...DOT_SEGMENTS.map((path) => refused(`the dot segment of ${path}`, target(path))),
  ...DOT_SEGMENTS.map((path) =>
    refused(`that of ${path} in a websocket`, [
      ":method",
      "CONNECT",
      ":protocol",
      "websocket",
      ":scheme",
      "http",
      ":authority",
      "a",
      ":path",
      path,
    ]),
  ),
  ...NO_DOT_SEGMENTS.map((path) => passed(`no dot segment in ${path}`, target(path), sent(`GET ${path}`))),
  malformed("an authority with a path", authority("a/b")),
  passed("an authority in capitals", authority("A"), GET),
  passed("an authority with the dot of the root", authority("a."), GET),
  refused("an authority with two dots behind it", authority("a..")),
  refused("an authority of a dot", authority(".")),
  refused("an authority that is a list", authority("a,b")),
  refused("an authority in percent form", authority("%61")),
  refused("an authority with a port beyond 65535", authority("a:65536")),
  malformed("an empty authority", authority("")),
  malformed("neither authority nor host", [...METHOD, ":scheme", "http", ":path", "/"]),
  refused("an authority and another host", [...HEAD, "host", "evil"]),
  malformed("two hosts", [...METHOD, ":scheme", "http", ":path", "/", "host", "a", "host", "b"]),
  passed("host alone", [...METHOD, ":scheme", "http", ":path", "/", "host", "a"], GET),
  passed("an authority and the same host", [...HEAD, "host", "a"], GET),
  passed("a scheme of another kind", [...METHOD, ":scheme", "https", ":authority", "a", ":path", "/"], GET),
  refused("a method in small letters", method("get")),
  refused("a method in mixed letters", method("Get")),
  refused("a method that ends in a small letter", method("DELETe")),
  refused("connect in small letters", method("connect")),
  malformed("CONNECT with a path", method("CONNECT")),
  refused("CONNECT", [":method", "CONNECT", ":authority", "a:443"], 405),
  malformed("CONNECT for a protocol without a path", [
    ":method",
    "CONNECT",
    ":protocol",
    "websocket",
    ":authority",
    "a",
  ]),
  malformed("a protocol without CONNECT", [...HEAD, ":protocol", "websocket"]),
  refused("CONNECT for HTTP/2 inside itself", [":method", "CONNECT", ":protocol", "h2c", ...REST], 501),
  malformed("CONNECT for an empty protocol", [":method", "CONNECT", ":protocol", "", ...REST]),
  malformed("CONNECT for a protocol with a line end", [":method", "CONNECT", ":protocol", "x\r\nX-A: 1", ...REST]),
];

const FIELDS: readonly HostileStream[] = [
  malformed("a name in capitals", [...HEAD, "X-A", "1"]),
  malformed("the coding in capitals", [...POST, "Transfer-Encoding", "chunked"]),
  dropped("a blank in a name", [...HEAD, "x a", "1"]),
  dropped("a colon in a name", [...HEAD, "x:a", "1"]),
  dropped("a line end in a name", [...HEAD, "x\r\na", "1"]),
  dropped("a NUL in a name", [...HEAD, "x\0a", "1"]),
  dropped("a letter beyond ASCII in a name", [...HEAD, "x-\xe4", "1"]),
  dropped("an empty name", [...HEAD, "", "1"]),
  dropped("CR and LF in a value", [...HEAD, "x-a", "1\r\nTransfer-Encoding: chunked"]),
  dropped("LF in a value", [...HEAD, "x-a", "1\nx-b: 2"]),
  dropped("CR in a value", [...HEAD, "x-a", "1\rx-b: 2"]),
  dropped("a NUL in a value", [...HEAD, "x-a", "\0"]),
  dropped("a control character in a value", [...HEAD, "x-a", "\x01"]),
  dropped("a blank before a value", [...HEAD, "x-a", " 1"]),
  dropped("a blank behind a value", [...HEAD, "x-a", "1 "]),
  malformed("a coding", [...POST, "transfer-encoding", "chunked"], { data: "0\r\n\r\n" }),
  malformed("Connection", [...HEAD, "connection", "x-a"]),
  malformed("Keep-Alive", [...HEAD, "keep-alive", "5"]),
  malformed("Proxy-Connection", [...HEAD, "proxy-connection", "close"]),
  malformed("Upgrade", [...HEAD, "upgrade", "websocket"]),
  malformed("TE for more than trailers", [...HEAD, "te", "gzip"]),
  malformed("two lengths", [...POST, "content-length", "1", "content-length", "1"], { data: "a" }),
  malformed("a list of lengths", [...POST, "content-length", "1, 1"], { data: "a" }),
  malformed("a signed length", [...POST, "content-length", "+1"], { data: "a" }),
  malformed("a negative length", [...POST, "content-length", "-1"], { data: "a" }),
  malformed("a length and no body", [...POST, "content-length", "1"]),
  malformed("a body longer than its length", [...POST, "content-length", "1"], {
    outcome: "ended",
    data: "GET /smuggled HTTP/1.1\r\n\r\n",
  }),
  malformed("a body shorter than its length", [...POST, "content-length", "9"], { data: "short" }),
  malformed("a body where there should be none", [...POST, "content-length", "0"], {
    outcome: "ended",
    mayReach: sent("POST /", "", "content-length: 0\r\n"),
    data: "GET /smuggled HTTP/1.1\r\n\r\n",
  }),
  passed("a body like chunks", POST, sent("POST /", "", CHUNKED, "5\r\n0\r\n\r\n\r\n0\r\n\r\n"), { data: "0\r\n\r\n" }),
  passed(
    "a body of the length it says",
    [...POST, "content-length", "1"],
    sent("POST /", "", "content-length: 1\r\n", "a"),
    { data: "a" },
  ),
  passed("names with underscores", [...HEAD, "transfer_encoding", "chunked", "x_forwarded_for", "10.0.0.1"], GET),
  passed("where the request came from, forged", [...HEAD, "x-forwarded-proto", "https", "forwarded", "for=b"], GET),
  ...SHORT_PASSES.map((value) =>
    passed(`passes that are few enough: ${value.slice(-50)}`, [...HEAD, "cdn-loop", value], sentAfter(value)),
  ),
  ...TOO_MANY_PASSES.map((value) =>
    refused(`more passes than allowed: ${value.length} of ${value.slice(0, 40)}`, [...HEAD, "cdn-loop", value], 508),
  ),
  refused(
    "more passes than allowed in fields of their own",
    [...HEAD, ...Array.from({ length: 11 }, () => ["cdn-loop", "gwproxy"]).flat()],
    508,
  ),
  passed("a certificate of a client that nobody has seen, forged", [...HEAD, "x-forwarded-client-cert", "Hash=1"], GET),
  passed("fields of proxies", [...HEAD, "proxy-authorization", "x", "trailer", "x", "http2-settings", "x"], GET),
  passed("an expectation that is unknown", [...HEAD, "expect", "miracles"], GET),
  passed("a cookie in crumbs", [...HEAD, "cookie", "a=1", "cookie", "b=2"], sent("GET /", "cookie: a=1; b=2\r\n")),
  refused(
    "many fields that are larger together",
    [...HEAD, ...Array.from({ length: 110 }, () => ["x-a", "a".repeat(200)]).flat()],
    431,
  ),
  refused("a field larger than allowed", [...HEAD, "x-a", "a".repeat(17_000)], 431),
  malformed("a pseudo-field among the trailers", POST, { data: "a", trailers: [":path", "/evil"] }),
  passed("a line end among the trailers", POST, sent("POST /", "", CHUNKED, "1\r\na\r\n0\r\n\r\n"), {
    data: "a",
    trailers: ["x-a", "1\r\nx-b: 2"],
  }),
  malformed("a length among the trailers", POST, { data: "a", trailers: ["content-length", "9"] }),
  { ...refused("a host among the trailers", POST), data: "a", trailers: ["host", "evil"] },
  malformed("a coding among the trailers", POST, { data: "a", trailers: ["transfer-encoding", "chunked"] }),
  passed("trailers that authenticate and forge", POST, sent("POST /", "", CHUNKED, "1\r\na\r\n0\r\nx-sum: 1\r\n\r\n"), {
    data: "a",
    trailers: ["x-sum", "1", "authorization", "x", "x-forwarded-for", "10.0.0.1"],
  }),
  { ...malformed("a field block of a hundred frames", [...HEAD, "x-a", "a".repeat(1_600_000)]), outcome: "ended" },
];

export const HOSTILE_STREAMS: readonly HostileStream[] = [...PSEUDO, ...FIELDS];
