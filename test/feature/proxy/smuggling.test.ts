import assert from "node:assert/strict";
import { test } from "node:test";
import { listener, rawClient, route, startDataPlane, staticBackend, to } from "../../support/data-plane.ts";
import { startRawUpstream, startUpstream } from "../../support/upstream.ts";

const HOST = "Host: a\r\n";
/** Requests about whose end, or whose target, two parsers could disagree. None may reach the upstream. */
const REFUSED: readonly (readonly [name: string, bytes: string, status: RegExp])[] = [
  [
    "both lengths",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG`,
    /^HTTP\/1\.1 400/,
  ],
  [
    "both lengths, other order",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nG`,
    /^HTTP\/1\.1 400/,
  ],
  [
    "two differing lengths",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    /^HTTP\/1\.1 400/,
  ],
  ["a list of lengths", `POST / HTTP/1.1\r\n${HOST}Content-Length: 1, 1\r\n\r\na`, /^HTTP\/1\.1 400/],
  ["a signed length", `POST / HTTP/1.1\r\n${HOST}Content-Length: +1\r\n\r\na`, /^HTTP\/1\.1 400/],
  ["a negative length", `POST / HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`, /^HTTP\/1\.1 400/],
  ["a hexadecimal length", `POST / HTTP/1.1\r\n${HOST}Content-Length: 0x1\r\n\r\na`, /^HTTP\/1\.1 400/],
  [
    "chunked that is not last",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1\.1 400/,
  ],
  [
    "a coding before chunked",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1\.1 400/,
  ],
  [
    "chunked twice",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1\.1 400/,
  ],
  ["a name like chunked", `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, /^HTTP\/1\.1 400/],
  [
    "a vertical tab in the coding",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1\.1 400/,
  ],
  [
    "space before the colon",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1\.1 400/,
  ],
  ["a folded line", `GET / HTTP/1.1\r\n${HOST}X-A: 1\r\n Transfer-Encoding: chunked\r\n\r\n`, /^HTTP\/1\.1 400/],
  ["a bare CR in a value", `GET / HTTP/1.1\r\n${HOST}X-A: 1\rX-B: 2\r\n\r\n`, /^HTTP\/1\.1 400/],
  ["a bare LF as line end", `GET / HTTP/1.1\nHost: a\n\n`, /^HTTP\/1\.1 400/],
  ["NUL in a value", `GET / HTTP/1.1\r\n${HOST}X-A: \0\r\n\r\n`, /^HTTP\/1\.1 400/],
  ["no host", `GET / HTTP/1.1\r\n\r\n`, /^HTTP\/1\.1 400/],
  ["two hosts", `GET / HTTP/1.1\r\n${HOST}Host: b\r\n\r\n`, /^HTTP\/1\.1 400/],
  ["a host with a path", `GET / HTTP/1.1\r\nHost: a/b\r\n\r\n`, /^HTTP\/1\.1 400/],
  ["a host with user data", `GET / HTTP/1.1\r\nHost: u@a\r\n\r\n`, /^HTTP\/1\.1 400/],
  [
    "a chunk longer than it says",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n`,
    /^(?:HTTP\/1\.1 400|$)/,
  ],
  ["chunked in HTTP/1.0", `POST / HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, /^HTTP\/1\.1 400/],
  ["a dot segment", `GET /a/../b HTTP/1.1\r\n${HOST}\r\n`, /^HTTP\/1\.1 400/],
  ["an encoded dot segment", `GET /a/%2E%2e/b HTTP/1.1\r\n${HOST}\r\n`, /^HTTP\/1\.1 400/],
  ["a target that is no path", `GET foo HTTP/1.1\r\n${HOST}\r\n`, /^HTTP\/1\.1 400/],
  ["a fragment", `GET /a#b HTTP/1.1\r\n${HOST}\r\n`, /^HTTP\/1\.1 400/],
  ["CONNECT", `CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n`, /^HTTP\/1\.1 405/],
  [
    "a websocket with a body",
    `GET / HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\na`,
    /^HTTP\/1\.1 501/,
  ],
  ["an unknown version", `GET / HTTP/3.7\r\n${HOST}\r\n`, /^HTTP\/1\.1 400/],
  ["too many headers", `GET / HTTP/1.1\r\n${HOST}${"X-A: 1\r\n".repeat(120)}\r\n`, /^HTTP\/1\.1 431/],
  ["too large a header", `GET / HTTP/1.1\r\n${HOST}X-A: ${"a".repeat(70_000)}\r\n\r\n`, /^HTTP\/1\.1 431/],
];

test("requests that two parsers could read differently are refused and the connection is closed", async (context) => {
  const upstream = await startUpstream((request, response) => {
    request.resume();
    response.end("reached");
  });
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  try {
    for (const [name, bytes, status] of REFUSED) {
      await context.test(name, async () => {
        const text = await rawClient(plane.port, bytes).closed();
        assert.match(text, status);
        assert.doesNotMatch(text, /reached/);
        assert.equal(text.match(/HTTP\/1\.1/g)?.length ?? 0, text === "" ? 0 : 1);
      });
    }
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

/** Answers that an upstream must not send. The client gets 502 or a cut, never a second answer. */
const BAD_ANSWERS: readonly (readonly [name: string, bytes: string])[] = [
  ["both lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
  ["two differing lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"],
  ["a coding that is not chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
  ["a malformed chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n"],
  ["an overlong chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n"],
  ["a folded line", "HTTP/1.1 200 OK\r\nX-A: 1\r\n b\r\nContent-Length: 0\r\n\r\n"],
  ["space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\na"],
  ["a bare CR", "HTTP/1.1 200 OK\r\nX-A: a\rb\r\nContent-Length: 0\r\n\r\n"],
  ["another protocol", "SSH-2.0-OpenSSH\r\n\r\n"],
  ["an unasked upgrade", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"],
  ["a header block without end", `HTTP/1.1 200 OK\r\nX-A: ${"a".repeat(70_000)}`],
];

test("answers that cannot be trusted become 502 or a cut", async (context) => {
  for (const [name, bytes] of BAD_ANSWERS) {
    await context.test(name, async () => {
      const upstream = await startRawUpstream((socket) => socket.once("data", () => socket.write(bytes, "latin1")));
      const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
      try {
        const client = rawClient(plane.port, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        const text = await client.closed();
        if (text === "" || text.includes(" 200 OK")) assert.doesNotMatch(text, /0\r\n\r\n$/);
        else assert.match(text, /^HTTP\/1\.1 502 [^]*upstream sent an invalid response$/);
      } finally {
        plane.proxy.close();
        await upstream.close();
      }
    });
  }
});

test("bytes behind an answer are not taken for the next one", async () => {
  const upstream = await startRawUpstream((socket) =>
    socket.on("data", () =>
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
    ),
  );
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  try {
    for (let at = 0; at < 3; at++) assert.equal(await (await fetch(plane.url)).text(), "a");
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});
