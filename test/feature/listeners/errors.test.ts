/** What answers of the gateway's own look like, by whatever way a client came. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import {
  listener,
  prefix,
  rawClient,
  route,
  startDataPlane,
  staticBackend,
  to,
  type DataPlane,
} from "../../support/gateway/data-plane.ts";
import { call } from "../../support/clients/http.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** /gone has no backend that can be reached; /none has none at all; every other path has no route. */
async function plane(t: TestContext): Promise<DataPlane> {
  const nowhere = {
    matches: prefix("/none"),
    backends: [{ weight: 1, backend: "", invalidReason: "no such Service" }],
  };
  const gone = { ...to("gone"), matches: prefix("/gone") };
  const started = await startDataPlane([listener(), route("r", [gone, nowhere]), staticBackend("gone", 1)]);
  t.after(() => started.proxy.close());
  return started;
}

const CASES: readonly (readonly [path: string, status: number, text: string, grpc: string])[] = [
  ["/", 404, "route not found", "12"],
  ["/a/../b", 400, "invalid request", "13"],
  ["/none", 500, "no valid backends", "14"],
  ["/gone", 503, "upstream call failed", "14"],
];

test("an answer of ours is text of a known length with an id, and nothing of its cause", async (t) => {
  const { url } = await plane(t);
  for (const [path, status, text] of CASES) {
    // The client would tidy the path up.
    if (path.includes("..")) continue;
    const answer = await call(url + path);
    assert.deepEqual([answer.status, answer.body], [status, text]);
    const { "content-type": type, "content-length": length, "x-request-id": id, date, server } = answer.headers;
    assert.deepEqual([type, length, server], ["text/plain; charset=utf-8", String(text.length), undefined]);
    assert.match(String(id), ID);
    assert.ok(Math.abs(Date.parse(String(date)) - Date.now()) < 60_000);
  }
});

test("HTTP/2 gets the same, and gRPC its own form", async (t) => {
  const { url } = await plane(t);
  const session = await connectHttp2(url);
  t.after(() => void session.destroy());
  for (const [path, status, text, grpcStatus] of CASES) {
    const answer = await sendHttp2(session, { ":path": path });
    assert.deepEqual([answer.status, answer.body.toString()], [status, text]);
    assert.match(String(answer.headers["x-request-id"]), ID);
    const grpc = await sendHttp2(session, { ":path": path, "content-type": "application/grpc+proto" });
    const { "grpc-status": code, "grpc-message": message, "content-type": type } = grpc.headers;
    assert.deepEqual([grpc.status, type, code, message], [200, "application/grpc", grpcStatus, text]);
    assert.equal(grpc.body.length, 0);
    assert.match(String(grpc.headers["x-request-id"]), ID);
  }
});

test("a HEAD has the length of the text and no text", async (t) => {
  const { url } = await plane(t);
  const answer = await call(url, { method: "HEAD" });
  assert.deepEqual([answer.status, answer.headers["content-length"], answer.body], [404, "15", ""]);
});

test("the id that a client names is kept where it is one, and told to it", async (t) => {
  const { url } = await plane(t);
  const idFor = async (id: string): Promise<string> =>
    String((await call(url, { headers: { "x-request-id": id } })).headers["x-request-id"]);
  assert.equal(await idFor("abc-123"), "abc-123");
  assert.equal(await idFor("x".repeat(128)), "x".repeat(128));
  assert.match(await idFor("x".repeat(129)), ID);
  assert.match(await idFor("two words"), ID);
});

test("what is no request at all is answered in the same way", async (t) => {
  const { port } = await plane(t);
  const cases: readonly (readonly [string, number, string])[] = [
    ["GET / HTTP/1.1\r\nbroken\r\n\r\n", 400, "invalid request"],
    ["GET / HTTP/1.1\r\n\r\n", 400, "invalid request"],
    ["CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 405, "method not allowed"],
    [`GET / HTTP/1.1\r\nHost: a\r\nx: ${"y".repeat(70_000)}\r\n\r\n`, 431, ""],
    [`GET / HTTP/1.1\r\nHost: a\r\n${"x: y\r\n".repeat(100)}\r\n`, 431, ""],
  ];
  for (const [bytes, status, text] of cases) {
    const answer = await rawClient(port, bytes).closed();
    const [head = "", body] = answer.split("\r\n\r\n");
    assert.ok(head.startsWith(`HTTP/1.1 ${status} `), head);
    assert.equal(body, text);
    const id = /^x-request-id: (.*)$/im.exec(head)?.[1] ?? "";
    assert.match(id, ID);
    assert.match(head, new RegExp(`^content-length: ${text.length}$`, "im"));
    assert.match(head, /^date: .* GMT$/im);
    assert.match(head, /^connection: close$/im);
  }
});
