import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { TransformationChoiceSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import type { RoutedExchange, Reply } from "../../../../src/proxy/exchange/exchange.ts";
import { transformation } from "../../../../src/proxy/policies/transformation.ts";
import { ChunkStream, makeDeps, makeExchange, makeReply, readAll } from "../../../support/gateway/exchange.ts";

type Branches = NonNullable<MessageInitShape<typeof TransformationChoiceSchema>["branches"]>;

async function run(branches: Branches, exchange: RoutedExchange, reply = makeReply()): Promise<Reply> {
  return transformation.compile(create(TransformationChoiceSchema, { branches }), makeDeps())(exchange, () => reply);
}

test("headers are added, set and removed in that order", async () => {
  const exchange = makeExchange({ headers: ["x-a", "1", "x-old", "1"], target: "/p" });
  const request = {
    add: [{ name: "x-a", expression: "request.path" }],
    set: [{ name: "x-b", expression: "size(request.path)" }],
    remove: ["X-Old"],
  };
  await run([{ transformation: { request } }], exchange);
  assert.deepEqual(exchange.requestHeaders.raw, ["x-a", "1", "x-a", "/p", "x-b", "2"]);
});

test("a failing or null value removes what the client sent", async () => {
  const exchange = makeExchange({ headers: ["x-user", "root", "x-role", "admin", "x-list", "1"] });
  const request = {
    set: [
      { name: "x-user", expression: "jwt.sub" },
      { name: "x-list", expression: '["a"]' },
    ],
    add: [{ name: "x-role", expression: "null" }],
  };
  await run([{ transformation: { request } }], exchange);
  assert.deepEqual(exchange.requestHeaders.raw, []);
});

test("a value cannot start a new header line", async () => {
  const exchange = makeExchange({ headers: ["x-a", "1"] });
  await run([{ transformation: { request: { set: [{ name: "x-a", expression: '"a\\r\\nx-b: 1"' }] } } }], exchange);
  assert.deepEqual(exchange.requestHeaders.raw, []);
});

test("text beyond ASCII is sent as its UTF-8 bytes", async () => {
  const exchange = makeExchange();
  await run([{ transformation: { request: { set: [{ name: "x-a", expression: '"é"' }] } } }], exchange);
  assert.equal(exchange.requestHeaders.get("x-a"), "\u00c3\u00a9");
});

test("pseudo-headers change method, path and authority, and bad or failing values change nothing", async () => {
  const exchange = makeExchange({ method: "GET", target: "/a", host: "a.test" });
  const set = (values: Record<string, string>): Branches => [
    {
      transformation: {
        request: { set: Object.entries(values).map(([name, expression]) => ({ name, expression })) },
      },
    },
  ];
  await run(set({ ":method": '"POST"', ":path": '"/b?x=1"', host: '"b.test:81"' }), exchange);
  assert.deepEqual([exchange.method, exchange.target, exchange.host], ["POST", "/b?x=1", "b.test:81"]);
  await run(set({ ":method": '"A B"', ":path": '"/ HTTP/1.1"', ":authority": "jwt.sub" }), exchange);
  assert.deepEqual([exchange.method, exchange.target, exchange.host], ["POST", "/b?x=1", "b.test:81"]);
});

test("the request body is replaced, the client's is read to its end, and the length goes", async () => {
  const stream = new ChunkStream(["old ", "body"]);
  const exchange = makeExchange({ body: stream, headers: ["Content-Length", "8"] });
  await run([{ transformation: { request: { body: '{"method": request.method}' } } }], exchange);
  assert.equal((await readAll(exchange.requestBody)).toString(), '{"method":"GET"}');
  assert.equal(exchange.requestHeaders.has("content-length"), false);
});

test("a body that fails is empty", async () => {
  const exchange = makeExchange({ body: Buffer.from("secret") });
  await run([{ transformation: { request: { body: "jwt.sub" } } }], exchange);
  assert.equal((await readAll(exchange.requestBody)).length, 0);
});

test("metadata of the request are seen by the response, whose own keys win", async () => {
  const exchange = makeExchange({ target: "/p" });
  const branches = [
    {
      transformation: {
        request: { metadata: { path: "request.path", both: '"request"', bad: "jwt.sub" } },
        response: {
          metadata: { both: '"response"' },
          set: [
            { name: "x-meta", expression: 'metadata.path + " " + metadata.both + " " + string(has(metadata.bad))' },
          ],
        },
      },
    },
  ];
  const reply = await run(branches, exchange);
  assert.equal(reply.headers.get("x-meta"), "/p response false");
});

test("the response sees its own code and headers, and can change its status", async () => {
  const reply = makeReply({ status: 404, headers: HeaderList.of({ "X-Up": "v" }) });
  const response = {
    set: [
      { name: ":status", expression: "response.code == 404 ? 200 : response.code" },
      { name: "x-copy", expression: 'response.headers["x-up"]' },
    ],
  };
  await run([{ transformation: { response } }], makeExchange(), reply);
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get("x-copy"), "v");
});

test("a response body that is read is still sent, with its trailers", async () => {
  const reply = makeReply({ body: new ChunkStream(['{"n":', "41}"], ["grpc-status", "0"]) });
  const response = { set: [{ name: "x-n", expression: "json(response.body).n + 1" }] };
  await run([{ transformation: { response } }], makeExchange(), reply);
  assert.equal(reply.headers.get("x-n"), "42");
  assert.ok(reply.body !== null && !Buffer.isBuffer(reply.body));
  const seen: string[] = [];
  reply.body.read({
    data: (chunk) => seen.push(chunk.toString()) > 0,
    end: (trailers) => seen.push(...trailers),
    error: assert.fail,
  });
  assert.deepEqual(seen, ['{"n":', "41}", "grpc-status", "0"]);
});

test("a response body over the limit reads as null, its start as the prefix, and it goes on unharmed", async () => {
  const chunks = Array.from({ length: 8 }, (_, n) => String(n).repeat(300));
  const reply = makeReply({ body: new ChunkStream(chunks) });
  const response = {
    set: [{ name: "x-null", expression: 'string(response.body == null) + " " + string(size(response.bodyPrefix))' }],
  };
  await run([{ transformation: { response } }], makeExchange(), reply);
  assert.equal(reply.headers.get("x-null"), "true 1024");
  assert.equal((await readAll(reply.body)).toString(), chunks.join(""));
});

test("a paused reader of a captured body gets every chunk once", async () => {
  const chunks = ["a".repeat(600), "b".repeat(600), "c".repeat(600), "d"];
  const reply = makeReply({ body: new ChunkStream(chunks) });
  const response = { set: [{ name: "x-size", expression: "size(response.bodyPrefix)" }] };
  await run([{ transformation: { response } }], makeExchange(), reply);
  const { body } = reply;
  assert.ok(body !== null && !Buffer.isBuffer(body));
  const seen: string[] = [];
  let ends = 0;
  body.read({ data: (chunk) => seen.push(chunk.toString()) < 0, end: () => ends++, error: assert.fail });
  for (let turn = 0; turn < chunks.length + 2; turn++) body.resume();
  assert.deepEqual([seen, ends], [chunks, 1]);
});

test("a replaced response body ends the upstream's and drops the length", async () => {
  const stream = new ChunkStream(["old"]);
  const reply = makeReply({ body: stream, headers: HeaderList.of({ "content-length": "3" }) });
  await run([{ transformation: { response: { body: '"new"' } } }], makeExchange(), reply);
  assert.equal((await readAll(reply.body)).toString(), "new");
  assert.equal(stream.destroyed, true);
  assert.equal(reply.headers.has("content-length"), false);
});

test("the branch is chosen once, by the request as it was", async () => {
  const mark = (value: string): { set: { name: string; expression: string }[] } => ({
    set: [{ name: "x-branch", expression: `"${value}"` }],
  });
  const branches = [
    {
      condition: 'request.path == "/a"',
      transformation: { request: { set: [{ name: ":path", expression: '"/b"' }] }, response: mark("first") },
    },
    { transformation: { response: mark("second") } },
  ];
  assert.equal((await run(branches, makeExchange({ target: "/a" }))).headers.get("x-branch"), "first");
  assert.equal((await run(branches, makeExchange({ target: "/b" }))).headers.get("x-branch"), "second");
});
