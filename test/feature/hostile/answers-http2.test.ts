/** What an upstream of HTTP/2 says badly, in hand-made frames (RFC 9113 8.1.1): an error or a cut, and an honest answer to the next. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { HttpVersion } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import {
  endpoints,
  listener,
  rawClient,
  route,
  serviceBackend,
  startDataPlane,
  to,
} from "../../support/gateway/data-plane.ts";
import { ACK, END_STREAM, FRAME, frame, headers } from "../../support/clients/http2-frames.ts";
import { startRawUpstream } from "../../support/servers/upstream.ts";

const PREFACE_BYTES = 24;
const OK = [":status", "200"];
const PUSH_PROMISE = 5;
const head = (stream: number, ...more: string[]): Buffer => headers(stream, [...OK, ...more], 0);
const body = (stream: number, text: string): Buffer => frame(FRAME.data, END_STREAM, stream, text);
const honest = (stream: number): Buffer => Buffer.concat([head(stream), body(stream, "honest")]);

/** "refused": 502 or 503. "cut": the answer visibly breaks off. "either": as the parts happen to arrive. Otherwise the body of a 200. */
type Outcome = "refused" | "cut" | "either" | { readonly body: string };

interface Row {
  readonly name: string;
  readonly says: (stream: number) => readonly Buffer[];
  readonly outcome: Outcome;
}

const row = (name: string, outcome: Outcome, says: Row["says"]): Row => ({ name, outcome, says });

const ROWS: readonly Row[] = [
  row("no status", "refused", (at) => [headers(at, ["x-a", "1"]), body(at, "evil")]),
  row("a status that is no number", "refused", (at) => [headers(at, [":status", "abc"])]),
  row("a status of two digits", "refused", (at) => [headers(at, [":status", "99"])]),
  row("a switch of protocols", "refused", (at) => [headers(at, [":status", "101"], 0), body(at, "evil")]),
  row("two statuses", "refused", (at) => [headers(at, [...OK, ":status", "500"])]),
  row("a pseudo-field of requests", "refused", (at) => [headers(at, [...OK, ":path", "/"])]),
  row("a status behind a field", "refused", (at) => [headers(at, ["x-a", "1", ...OK])]),
  row("a name in capitals", "refused", (at) => [headers(at, [...OK, "X-A", "1"])]),
  row("Connection", "refused", (at) => [headers(at, [...OK, "connection", "close"])]),
  row("a coding", "refused", (at) => [head(at, "transfer-encoding", "chunked"), body(at, "0\r\n\r\n")]),
  row("two differing lengths", "refused", (at) => [
    head(at, "content-length", "1", "content-length", "2"),
    body(at, "a"),
  ]),
  row("a body before its head", "refused", (at) => [body(at, "evil")]),
  row("a promise that nobody may make", "refused", (at) => [
    frame(PUSH_PROMISE, 4, at, Buffer.concat([Buffer.from([0, 0, 0, 2]), Buffer.from([0x82])])),
  ]),
  row("a frame on a stream that nobody opened", "refused", (at) => [headers(at + 100, OK)]),
  row("a head that does not fit", "refused", (at) => [headers(at, [...OK, "x-a", "a".repeat(200_000)])]),
  row("a head in too many frames", "refused", (at) => [
    frame(FRAME.headers, 0, at, Buffer.from([0x88])),
    ...Array.from({ length: 200 }, () => frame(FRAME.continuation, 0, at)),
  ]),
  row("a field block that cannot be unpacked", "refused", (at) => [
    frame(FRAME.headers, 4, at, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff])),
  ]),
  row("a frame that is too large", "refused", (at) => [frame(FRAME.data, END_STREAM, at, Buffer.alloc(20_000))]),
  row("a window beyond what there is", "refused", () => [
    frame(FRAME.windowUpdate, 0, 0, Buffer.from([0x7f, 255, 255, 255])),
  ]),
  row("a reset", "refused", (at) => [frame(FRAME.reset, 0, at, Buffer.from([0, 0, 0, 2]))]),
  row("another protocol", "refused", () => [Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")]),
  row("a body longer than its length", "either", (at) => [head(at, "content-length", "1"), body(at, "abcdef")]),
  row("a body shorter than its length", "either", (at) => [head(at, "content-length", "9"), body(at, "half")]),
  row("a second head that is no trailer", "either", (at) => [head(at), headers(at, OK, 0), body(at, "evil")]),
  row("a pseudo-field among the trailers", "either", (at) => [
    head(at),
    frame(FRAME.data, 0, at, "a"),
    headers(at, OK),
  ]),
  row("a reset in the middle", "either", (at) => [
    head(at, "content-length", "9"),
    frame(FRAME.data, 0, at, "half"),
    frame(FRAME.reset, 0, at, Buffer.from([0, 0, 0, 2])),
  ]),
  row("CR and LF in a value", { body: "a" }, (at) => [head(at, "x-hop", "1\r\nset-cookie: a=1"), body(at, "a")]),
  row("trailers that set cookies", { body: "a" }, (at) => [
    head(at),
    frame(FRAME.data, 0, at, "a"),
    headers(at, ["set-cookie", "a=1", "x-hop", "1\r\n"]),
  ]),
  row("interim answers by the hundred", { body: "a" }, (at) => [
    ...Array.from({ length: 300 }, () => headers(at, [":status", "103", "link", "</a>"], 0)),
    head(at),
    body(at, "a"),
  ]),
  row("empty DATA frames by the thousand", "either", (at) => [
    head(at),
    ...Array.from({ length: 5_000 }, () => frame(FRAME.data, 0, at)),
    body(at, "a"),
  ]),
];

/** Speaks the row to the first request of all, and honestly to every other. */
async function stage(t: TestContext, { says }: Row): Promise<number> {
  let fresh = true;
  const upstream = await startRawUpstream((socket: Socket) => {
    let rest = Buffer.alloc(0);
    let greeted = false;
    socket.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      if (!greeted && rest.length >= PREFACE_BYTES) {
        greeted = true;
        rest = rest.subarray(PREFACE_BYTES);
        socket.write(frame(FRAME.settings, 0, 0));
      }
      while (greeted && rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        const [type = 0, flags = 0] = rest.subarray(3, 5);
        const stream = rest.readUInt32BE(5);
        rest = rest.subarray(9 + rest.readUIntBE(0, 3));
        if (type === FRAME.settings && (flags & ACK) === 0) socket.write(frame(FRAME.settings, ACK, 0));
        if (type !== FRAME.headers) continue;
        socket.write(fresh ? Buffer.concat([...says(stream)]) : honest(stream));
        fresh = false;
      }
    });
  });
  t.after(() => upstream.close());
  const backend = serviceBackend("backend/default/b", upstream.port, HttpVersion.HTTP2);
  const found = endpoints("backend/default/b", [upstream.port]);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), backend, found]);
  t.after(() => plane.proxy.close());
  return plane.port;
}

const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const REFUSED = /^HTTP\/1\.1 50[23] [^]*\r\n\r\nupstream /;

function isCut(text: string): boolean {
  if (text === "") return true;
  const length = /content-length: (\d+)/i.exec(text)?.[1];
  const sent = text.slice(text.indexOf("\r\n\r\n") + 4);
  return length === undefined ? !sent.endsWith("0\r\n\r\n") : sent.length < Number(length);
}

for (const each of ROWS) {
  const { name, outcome } = each;
  test(`an upstream of HTTP/2 that sends ${name} harms nobody`, { timeout: 60_000 }, async (t) => {
    const port = await stage(t, each);
    const text = await rawClient(port, REQUEST).closed();
    assert.doesNotMatch(text, /evil|set-cookie|x-hop/i);
    if (typeof outcome === "object")
      assert.match(text, new RegExp(`^HTTP/1\\.1 200 [^]*\\r\\n\\r\\n1\\r\\n${outcome.body}\\r\\n0\\r\\n`));
    else if (outcome === "refused") assert.match(text, REFUSED);
    else assert.ok(REFUSED.test(text) || isCut(text), text);
    assert.match(await rawClient(port, REQUEST).closed(), /\r\n\r\n6\r\nhonest\r\n0\r\n\r\n$/);
  });
}
