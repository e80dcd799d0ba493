/** HTTP/2 from clients: what passes, what is refused, and how a stream ends when something breaks. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { constants, type ClientHttp2Session } from "node:http2";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { HttpVersion } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import {
  endpoints,
  listener,
  policy,
  prefix,
  route,
  serviceBackend,
  startDataPlane,
  to,
  type DataPlane,
} from "../../support/gateway/data-plane.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { answerOf, connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const HEAD = { ":path": "/", ":authority": "shop.test" };

/** A backend that says that it speaks HTTP/1.1. */
function http1(port: number): Resource[] {
  return [serviceBackend("backend/default/b", port, HttpVersion.HTTP1), endpoints("backend/default/b", [port])];
}

async function planeTo(t: TestContext, port: number): Promise<DataPlane> {
  const plane = await startDataPlane([listener(), route("r", [to("b")]), ...http1(port)]);
  t.after(() => plane.proxy.close());
  return plane;
}

async function upstreamOf(t: TestContext, answer: RequestListener): Promise<number> {
  const upstream = await startUpstream(answer);
  t.after(() => upstream.close());
  return upstream.port;
}

async function session(t: TestContext, { port }: DataPlane): Promise<ClientHttp2Session> {
  const opened = await connectHttp2(`http://127.0.0.1:${port}`);
  t.after(() => void opened.destroy());
  return opened;
}

async function echoSession(t: TestContext): Promise<ClientHttp2Session> {
  const echo = await startEcho(contextOf(t));
  return session(t, await planeTo(t, echo.port));
}

test("requests share a connection, and each gets its own answer", async (t) => {
  const client = await echoSession(t);
  const bodies = Array.from({ length: 50 }, (_, at) => `body ${at}`);
  const answers = await Promise.all(
    bodies.map((body, at) => sendHttp2(client, { ...HEAD, ":method": "POST", ":path": `/items/${at}?q=1` }, { body })),
  );
  answers.forEach(({ status, body }, at) => {
    const seen = echoed(body.toString());
    assert.equal(status, 200);
    assert.deepEqual([seen.method, seen.url, seen.body], ["POST", `/items/${at}?q=1`, `body ${at}`]);
  });
});

test("the upstream sees one host, one cookie and the protocol that the client came by", async (t) => {
  const client = await echoSession(t);
  const { body } = await sendHttp2(client, {
    ...HEAD,
    cookie: ["a=1", "b=2"],
    te: "trailers",
    "x-forwarded-for": "10.0.0.1",
  });
  const { headers } = echoed(body.toString());
  assert.equal(headers["host"], "shop.test");
  assert.equal(headers["cookie"], "a=1; b=2");
  assert.equal(headers["x-forwarded-for"], "10.0.0.1, 127.0.0.1");
  assert.equal(headers["x-forwarded-proto"], "http");
  assert.equal(headers[":authority"], undefined);
});

test("a body goes both ways with its trailers, and HEAD keeps its length", async (t) => {
  const big = Buffer.alloc(3_000_000, 7);
  let trailers: NodeJS.Dict<string> = {};
  const port = await upstreamOf(t, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      trailers = request.trailers;
      if (request.method === "HEAD") response.writeHead(200, { "content-length": "12" }).end();
      else {
        response.writeHead(200, { trailer: "x-sum" });
        response.write(Buffer.concat(chunks));
        response.addTrailers({ "x-sum": "ok" });
        response.end();
      }
    });
  });
  const client = await session(t, await planeTo(t, port));
  const parts = { body: big, trailers: { "x-end": "yes" } };
  const answer = await sendHttp2(client, { ...HEAD, ":method": "PUT" }, parts);
  assert.ok(answer.body.equals(big));
  assert.equal(answer.trailers["x-sum"], "ok");
  assert.equal(trailers["x-end"], "yes");
  const head = await sendHttp2(client, { ...HEAD, ":method": "HEAD" });
  assert.deepEqual([head.headers["content-length"], head.body.length], ["12", 0]);
});

test("pieces of an answer arrive before it ends, and a client that resets its stream takes the upstream with it", async (t) => {
  let gone: (() => void) | undefined;
  const left = new Promise<void>((resolve) => (gone = resolve));
  const port = await upstreamOf(t, (request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
    request.on("close", () => gone?.());
  });
  const client = await session(t, await planeTo(t, port));
  const stream = client.request(HEAD);
  const [first] = (await once(stream, "data")) as [Buffer];
  assert.equal(String(first), "data: 1\n\n");
  stream.close(constants.NGHTTP2_CANCEL);
  await left;
});

test("an answer that breaks off, or lasts too long, ends its stream with a reset and no other", async (t) => {
  const port = await upstreamOf(t, (request, response) => {
    response.writeHead(200, { "content-type": "text/plain" });
    response.write("half");
    if (request.url === "/broken") setImmediate(() => response.destroy());
    if (request.url === "/whole") response.end();
  });
  const timeout = policy("late", {
    targets: [{ target: { case: "route", value: "httproute/default/r" } }],
    units: [{ unit: { case: "timeouts", value: { requestMs: 300 } } }],
  });
  const resources = [listener(), route("r", [to("b", { matches: prefix("/") })]), ...http1(port), timeout];
  const plane = await startDataPlane(resources);
  t.after(() => plane.proxy.close());
  const client = await session(t, plane);
  const code = async (path: string): Promise<number> => {
    const stream = client.request({ ...HEAD, ":path": path });
    stream.resume().on("error", () => undefined);
    await once(stream, "close");
    return stream.rstCode;
  };
  assert.deepEqual(await Promise.all([code("/broken"), code("/endless"), code("/whole")]), [
    constants.NGHTTP2_CANCEL,
    constants.NGHTTP2_CANCEL,
    constants.NGHTTP2_NO_ERROR,
  ]);
});

test("a request that is not what it seems is refused and the connection lives on", async (t) => {
  const client = await echoSession(t);
  for (const headers of [
    { ...HEAD, host: "other.test" },
    { ...HEAD, ":path": "/a/../b" },
  ])
    assert.equal((await sendHttp2(client, headers)).status, 400, JSON.stringify(headers));
  for (const headers of [
    { ...HEAD, ":authority": "user@shop.test" },
    { ...HEAD, ":path": "*" },
  ])
    await assert.rejects(sendHttp2(client, headers), /PROTOCOL_ERROR/, JSON.stringify(headers));
  assert.equal((await sendHttp2(client, { ...HEAD, host: "shop.test" })).status, 200);
});

test("a client that waits for 100 Continue gets it when the body is read", async (t) => {
  const client = await echoSession(t);
  const stream = client.request({ ...HEAD, ":method": "POST", expect: "100-continue" }, { endStream: false });
  await once(stream, "continue");
  stream.end("now");
  assert.equal(echoed((await answerOf(stream)).body.toString()).body, "now");
});

test("headers beyond the limit are refused, and nothing of them reaches the upstream", async (t) => {
  const echo = await startEcho(contextOf(t));
  const client = await session(t, await planeTo(t, echo.port));
  assert.equal((await sendHttp2(client, { ...HEAD, "x-big": "x".repeat(20_000) })).status, 431);
  assert.equal(echo.seen.length, 0);
});

test("a client that resets stream after stream loses its connection, and others are served", async (t) => {
  const port = await upstreamOf(t, () => undefined);
  const plane = await planeTo(t, port);
  const client = await session(t, plane);
  const closed = new Promise<void>((resolve) => void client.once("close", resolve));
  for (let round = 0; round < 40 && !client.destroyed; round++) {
    for (let at = 0; at < 20 && !client.destroyed; at++) {
      const stream = client.request(HEAD);
      stream.on("error", () => undefined);
      stream.close(constants.NGHTTP2_CANCEL);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  await closed;
  const echo = await startEcho(contextOf(t));
  const other = await session(t, await planeTo(t, echo.port));
  assert.equal((await sendHttp2(other, HEAD)).status, 200);
});

test("a drain lets streams end, takes no new ones and closes the connection", async (t) => {
  let finish: (() => void) | undefined;
  const port = await upstreamOf(t, (_request, response) => {
    response.write("first ");
    finish = () => response.end("last");
  });
  const plane = await planeTo(t, port);
  const client = await session(t, plane);
  const stream = client.request(HEAD);
  await once(stream, "response");
  const goaway = once(client, "goaway");
  const drained = plane.proxy.drain();
  await goaway;
  finish?.();
  assert.equal(String((await answerOf(stream)).body), "first last");
  await drained;
});

test("bytes that only begin like HTTP/2 are taken for HTTP/1 and refused", async (t) => {
  const echo = await startEcho(contextOf(t));
  const { port } = await planeTo(t, echo.port);
  const socket = connect(port, "127.0.0.1");
  t.after(() => void socket.destroy());
  socket.write("PRI * HTTP/2.0\r\n");
  setImmediate(() => socket.write("Host: shop.test\r\n\r\n"));
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) text += chunk as string;
  assert.match(text, /^HTTP\/1\.1 400 /);
});
