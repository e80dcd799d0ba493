/**
 * Answers that an upstream must not send, or that mean to be read twice (RFC 9112 11.1). The client gets a 503, an answer
 * that visibly breaks off, or the answer that was meant; what is left over reaches nobody.
 */

/** "refused": 503. "cut": the head and perhaps more, and then the end of the connection. Otherwise status and body. */
type Outcome = "refused" | "lost" | "cut" | readonly [status: number, body: string];

export interface HostileAnswer {
  readonly name: string;
  readonly bytes: string;
  readonly outcome: Outcome;
  readonly method?: string;
  /** The upstream ends the connection behind the bytes. */
  readonly ends?: boolean;
  /** The connection stays clean and carries the next request. */
  readonly reused?: boolean;
}

const OK = "HTTP/1.1 200 OK\r\n";
const SMUGGLED = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
const refused = (name: string, bytes: string): HostileAnswer => ({ name, bytes, outcome: "refused" });
const cut = (name: string, bytes: string, ends = false): HostileAnswer => ({ name, bytes, outcome: "cut", ends });
const fields = (text: string, body = ""): string => `${OK}${text}\r\n\r\n${body}`;
const chunks = (body: string): string => fields("Transfer-Encoding: chunked", body);
const interim = (count: number): string => "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(count);

function clean(
  name: string,
  bytes: string,
  outcome: readonly [status: number, body: string],
  more: Partial<HostileAnswer> = {},
): HostileAnswer {
  return { name, bytes, outcome, ...more };
}

export const HOSTILE_ANSWERS: readonly HostileAnswer[] = [
  refused("a length and a coding", fields("Content-Length: 2\r\nTransfer-Encoding: chunked", "0\r\n\r\n")),
  refused("a coding and a length", fields("Transfer-Encoding: chunked\r\nContent-Length: 2", "0\r\n\r\n")),
  refused("two differing lengths", fields("Content-Length: 2\r\nContent-Length: 3", "abc")),
  refused("a list of differing lengths", fields("Content-Length: 2, 3", "abc")),
  refused("a list of equal lengths", fields("Content-Length: 2, 2", "ab")),
  refused("a negative length", fields("Content-Length: -1")),
  refused("a signed length", fields("Content-Length: +1", "a")),
  refused("a hexadecimal length", fields("Content-Length: 0x1", "a")),
  refused("an empty length", fields("Content-Length:")),
  refused("a length beyond what can be counted", fields("Content-Length: 99999999999999999999", "a")),
  refused("a coding before chunked", fields("Transfer-Encoding: gzip, chunked", "0\r\n\r\n")),
  refused("a coding that is not chunked", fields("Transfer-Encoding: identity", "a")),
  refused("chunked twice", fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n")),
  refused("chunked in quotes", fields('Transfer-Encoding: "chunked"', "0\r\n\r\n")),
  refused("chunked behind a vertical tab", fields("Transfer-Encoding: \x0bchunked", "0\r\n\r\n")),
  refused("chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
  refused("a folded line", fields("X-A: 1\r\n b\r\nContent-Length: 0")),
  refused("a space before the colon", fields("Content-Length : 1", "a")),
  refused("a space in a name", fields("X A: 1\r\nContent-Length: 0")),
  refused("an empty name", fields(": 1\r\nContent-Length: 0")),
  refused("a line without a colon", fields("X-A\r\nContent-Length: 0")),
  refused("a bare CR in a value", fields("X-A: a\rSet-Cookie: b\r\nContent-Length: 0")),
  refused("a bare LF in a value", fields("X-A: a\nSet-Cookie: b\r\nContent-Length: 0")),
  refused("a NUL in a value", fields("X-A: \0\r\nContent-Length: 0")),
  refused("bare LFs everywhere and a proper end", "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n"),
  refused("another protocol", "SSH-2.0-OpenSSH\r\n\r\n"),
  refused("HTTP/2", "HTTP/2 200 OK\r\n\r\n"),
  refused("HTTP/0.9", "hello\r\n\r\n"),
  refused("a status of two digits", "HTTP/1.1 99 OK\r\n\r\n"),
  refused("a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n"),
  refused("a status that no class has", "HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n"),
  refused("a CR in the status line", "HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n"),
  refused("a blank before the status line", " HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
  refused("an unasked upgrade", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
  refused("a head without end", `${OK}X-A: ${"a".repeat(70_000)}`),
  refused("a head too large", fields(`X-A: ${"a".repeat(70_000)}\r\nContent-Length: 0`)),
  refused("too many fields", fields(`${"X-A: 1\r\n".repeat(250)}Content-Length: 0`)),
  refused("interim answers without end", interim(40) + SMUGGLED),
  refused("an interim answer that is malformed", `HTTP/1.1 103 Early Hints\r\nContent-Length : 4\r\n\r\n${SMUGGLED}`),
  { ...refused("nothing at all", ""), outcome: "lost", ends: true },
  { ...refused("half a head", `${OK}X-A: 1\r\n`), outcome: "lost", ends: true },
  cut("a size with a prefix", chunks("0x1\r\na\r\n0\r\n\r\n")),
  cut("a size with a sign", chunks("+1\r\na\r\n0\r\n\r\n")),
  cut("a size beyond what can be counted", chunks("10000000000000001\r\na\r\n0\r\n\r\n")),
  cut("an empty size", chunks("\r\na\r\n0\r\n\r\n")),
  cut("a bare LF behind a size", chunks("1\na\r\n0\r\n\r\n")),
  cut("a chunk longer than its size", chunks("1\r\nabc\r\n0\r\n\r\n")),
  cut("a chunk without its line end", chunks("1\r\na0\r\n\r\n")),
  cut("a bare CR in an extension", chunks("1;a\rb\r\na\r\n0\r\n\r\n")),
  cut("an extension without end", chunks(`1;${"a".repeat(10_000)}\r\na\r\n0\r\n\r\n`)),
  cut("a folded trailer", chunks("0\r\nX-A: 1\r\n b\r\n\r\n")),
  cut("a trailer with a space before the colon", chunks("0\r\nX-A : 1\r\n\r\n")),
  cut("trailers without end", chunks(`0\r\n${"X-A: 1\r\n".repeat(500)}\r\n`)),
  cut("a body shorter than its length", fields("Content-Length: 9", "half"), true),
  cut("chunks that break off", chunks("4\r\nhalf\r\n"), true),
  clean("two equal lengths", fields("Content-Length: 1\r\nContent-Length: 1", "a"), [200, "a"], { reused: true }),
  clean("chunked in capitals", fields("TRANSFER-ENCODING: CHUNKED", "1\r\na\r\n0\r\n\r\n"), [200, "a"], {
    reused: true,
  }),
  clean("an extension", chunks('1;a="b"\r\na\r\n0\r\n\r\n'), [200, "a"], { reused: true }),
  clean(
    "trailers that frame, route and set cookies",
    chunks("1\r\na\r\n0\r\nContent-Length: 9\r\nHost: b\r\nSet-Cookie: a=1\r\n\r\n"),
    [200, "a"],
    { reused: true },
  ),
  clean("no reason", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", [200, "a"], { reused: true }),
  clean("a few interim answers", interim(3) + fields("Content-Length: 1", "a"), [200, "a"], { reused: true }),
  clean("no framing", fields("X-A: 1", "all"), [200, "all"], { ends: true }),
  clean("a second answer at once", fields("Content-Length: 1", `a${SMUGGLED}`), [200, "a"]),
  clean("a second answer behind chunks", chunks(`1\r\na\r\n0\r\n\r\n${SMUGGLED}`), [200, "a"]),
  clean("a second answer behind an empty one", fields("Content-Length: 0", SMUGGLED), [200, ""]),
  clean("line ends behind an answer", fields("Content-Length: 1", "a\r\n\r\n"), [200, "a"]),
  clean("a body longer than its length", fields("Content-Length: 1", "abc"), [200, "a"]),
  clean("a body with 204", `HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil`, [204, ""]),
  clean("chunks with 204", `HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n`, [
    204,
    "",
  ]),
  clean("an answer behind 204", `HTTP/1.1 204 No Content\r\n\r\n${SMUGGLED}`, [204, ""]),
  clean("a body with 304", `HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil`, [304, ""]),
  clean("a body for HEAD", fields("Content-Length: 4", "evil"), [200, ""], { method: "HEAD" }),
  clean("chunks for HEAD", chunks("4\r\nevil\r\n0\r\n\r\n"), [200, ""], { method: "HEAD" }),
  clean(
    "fields of the connection",
    fields("Connection: close, x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nUpgrade: h2c\r\nContent-Length: 1", "a"),
    [200, "a"],
  ),
];
