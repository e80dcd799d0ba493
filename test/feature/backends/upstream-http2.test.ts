/** HTTP/2 towards upstreams: what passes, how connections are shared, and what happens when something breaks. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { test, type TestContext } from "node:test";
import { BackendTlsSchema, HttpVersion } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { create } from "@bufbuild/protobuf";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import {
  endpoints,
  listener,
  policy,
  rawClient,
  route,
  serviceBackend,
  startDataPlane,
  staticBackend,
  to,
  type DataPlane,
} from "../../support/gateway/data-plane.ts";
import { answerOf, connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { settled } from "../../support/gateway/settled.ts";
import { startTlsUpstream, validNow } from "../../support/servers/tls-upstream.ts";
import { startRawUpstream } from "../../support/servers/upstream.ts";

const KEY = "backend/default/b";
const HEAD = { ":path": "/", ":authority": "shop.test" };

/** A data plane whose only backend says that it speaks HTTP/2. */
async function planeTo(t: TestContext, port: number): Promise<DataPlane> {
  const backend = [serviceBackend(KEY, port, HttpVersion.HTTP2), endpoints(KEY, [port])];
  const plane = await startDataPlane([listener(), route("r", [to("b")]), ...backend]);
  t.after(() => plane.proxy.close());
  return plane;
}

function streamsOf(): { next: () => Promise<ServerHttp2Stream>; take: (stream: ServerHttp2Stream) => void } {
  const queue: ServerHttp2Stream[] = [];
  const waiting: ((stream: ServerHttp2Stream) => void)[] = [];
  return {
    take(stream) {
      const waiter = waiting.shift();
      if (waiter === undefined) queue.push(stream);
      else waiter(stream);
    },
    next() {
      const ready = queue.shift();
      return ready === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(ready);
    },
  };
}

test("a request of HTTP/1.1 leaves as HTTP/2 with its body and trailers, and the answer comes back with its own", async (t) => {
  const seen: Record<string, unknown>[] = [];
  const upstream = await startHttp2Upstream(t, (stream, headers) => {
    const chunks: Buffer[] = [];
    seen.push({ ...headers });
    stream.on("trailers", (trailers) => seen.push({ ...trailers }));
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      stream.respond({ ":status": 201, "x-from": "upstream" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "ok" }));
      stream.end(Buffer.concat(chunks));
    });
  });
  const plane = await planeTo(t, upstream.port);
  const outgoing = httpRequest({ port: plane.port, host: "127.0.0.1", method: "POST", path: "/a?b=c" });
  outgoing.setHeader("host", "shop.test");
  outgoing.setHeader("te", "trailers");
  outgoing.setHeader("trailer", "x-end");
  outgoing.write("hello ");
  outgoing.write("world");
  outgoing.addTrailers({ "x-end": "yes" });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk as string;
  assert.deepEqual([response.statusCode, response.headers["x-from"], text], [201, "upstream", "hello world"]);
  assert.deepEqual(response.trailers, { "x-sum": "ok" });
  const [head, trailers] = seen;
  assert.deepEqual(
    [head?.[":method"], head?.[":path"], head?.[":authority"], head?.[":scheme"], head?.["te"]],
    ["POST", "/a?b=c", "shop.test", "http", "trailers"],
  );
  assert.deepEqual(
    [head?.["host"], head?.["transfer-encoding"], head?.["connection"]],
    [undefined, undefined, undefined],
  );
  assert.equal(trailers?.["x-end"], "yes");
});

test("an empty POST says that it is empty, and HEAD, 204 and 304 have no body", async (t) => {
  const lengths: (string | undefined)[] = [];
  const upstream = await startHttp2Upstream(t, (stream, headers) => {
    lengths.push(headers["content-length"]);
    const status = Number(headers[":path"]?.slice(1));
    stream.respond({ ":status": status, ...(status === 200 ? { "content-length": "3" } : {}) });
    stream.end(status === 200 ? "abc" : undefined);
  });
  const plane = await planeTo(t, upstream.port);
  const call = async (method: string, status: number): Promise<[number, string | null, string]> => {
    const answer = await fetch(`${plane.url}/${status}`, { method });
    return [answer.status, answer.headers.get("content-length"), await answer.text()];
  };
  assert.deepEqual(await call("POST", 200), [200, "3", "abc"]);
  assert.deepEqual(await call("HEAD", 200), [200, "3", ""]);
  assert.deepEqual(await call("GET", 204), [204, null, ""]);
  assert.deepEqual(await call("GET", 304), [304, null, ""]);
  assert.deepEqual(lengths, ["0", undefined, undefined, undefined]);
});

test("requests share a connection up to what the upstream allows, then another is opened", async (t) => {
  const streams = streamsOf();
  const upstream = await startHttp2Upstream(t, streams.take, { settings: { maxConcurrentStreams: 5 } });
  const plane = await planeTo(t, upstream.port);
  const first = fetch(plane.url);
  (await streams.next()).respond({ ":status": 200 }, { endStream: true });
  await first;
  const calls = Array.from({ length: 12 }, () => fetch(plane.url));
  const open = [];
  for (let at = 0; at < 12; at++) open.push(await streams.next());
  const perSession = new Map<unknown, number>();
  for (const { session } of open) perSession.set(session, (perSession.get(session) ?? 0) + 1);
  assert.ok([...perSession.values()].every((count) => count <= 5));
  assert.ok(perSession.has(upstream.sessions[0]), "the open connection is used");
  for (const stream of open) stream.respond({ ":status": 204 }, { endStream: true });
  for (const { status } of await Promise.all(calls)) assert.equal(status, 204);
});

test("a connection that says GOAWAY gets no new request, and the one under way ends well", async (t) => {
  const streams = streamsOf();
  const upstream = await startHttp2Upstream(t, streams.take);
  const plane = await planeTo(t, upstream.port);
  const slow = fetch(plane.url);
  const held = await streams.next();
  held.respond({ ":status": 200 });
  held.write("first ");
  const answer = await slow;
  upstream.sessions[0]?.close();
  const second = fetch(plane.url);
  const other = await streams.next();
  assert.notEqual(other.session, held.session);
  other.respond({ ":status": 200 });
  other.end("other");
  assert.equal(await (await second).text(), "other");
  held.end("last");
  assert.equal(await answer.text(), "first last");
});

test("a request that the upstream refused unseen is sent again, a POST with its body too", async (t) => {
  const bodies: string[] = [];
  let refused = 0;
  const upstream = await startHttp2Upstream(t, (stream) => {
    if (refused++ === 0) {
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    stream.setEncoding("utf8").on("data", (text: string) => bodies.push(text));
    stream.on("end", () => {
      stream.respond({ ":status": 200 });
      stream.end("ok");
    });
  });
  const plane = await planeTo(t, upstream.port);
  const buffered = policy("p", {
    targets: [{ target: { case: "route", value: "httproute/default/r" } }],
    phase: 2,
    units: [{ unit: { case: "buffer", value: { request: { maxBytes: 1000 } } } }],
  });
  await plane.set(buffered);
  const answer = await fetch(plane.url, { method: "POST", body: "once more" });
  assert.deepEqual([answer.status, await answer.text(), bodies], [200, "ok", ["once more"]]);
});

test("an answer that is reset half-way is reset with the same code on HTTP/2 and cut on HTTP/1.1", async (t) => {
  const streams = streamsOf();
  const upstream = await startHttp2Upstream(t, streams.take);
  const plane = await planeTo(t, upstream.port);
  const breakOff = async (): Promise<void> => {
    const stream = await streams.next();
    // Without this node ends the stream in good order before it resets it.
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.write("half", () => setImmediate(() => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)));
  };
  const session = await connectHttp2(plane.url);
  t.after(() => session.destroy());
  const stream = session.request(HEAD);
  const ended = once(stream, "close").catch(() => undefined);
  stream.on("error", () => undefined);
  stream.resume();
  await breakOff();
  await ended;
  assert.equal(stream.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  const client = rawClient(plane.port, "GET / HTTP/1.1\r\nhost: shop.test\r\n\r\n");
  await breakOff();
  const text = await client.closed();
  assert.match(text, /^HTTP\/1.1 200 /);
  assert.doesNotMatch(text, /\r\n0\r\n\r\n$/);
});

test("a reset before the answer is 503, and so is a connection that dies; the next request gets a new one", async (t) => {
  const streams = streamsOf();
  const upstream = await startHttp2Upstream(t, streams.take);
  const plane = await planeTo(t, upstream.port);
  const reset = fetch(plane.url, { method: "POST", body: "x" });
  (await streams.next()).close(constants.NGHTTP2_INTERNAL_ERROR);
  assert.equal((await reset).status, 503);
  const died = fetch(plane.url, { method: "POST", body: "x" });
  (await streams.next()).session?.destroy();
  assert.equal((await died).status, 503);
  const fine = fetch(plane.url);
  (await streams.next()).respond({ ":status": 204 }, { endStream: true });
  assert.equal((await fine).status, 204);
});

test("a GET on a connection that has served before and dies is sent again, once", async (t) => {
  const streams = streamsOf();
  const upstream = await startHttp2Upstream(t, streams.take);
  const plane = await planeTo(t, upstream.port);
  const first = fetch(plane.url);
  (await streams.next()).respond({ ":status": 204 }, { endStream: true });
  await first;
  const second = fetch(plane.url);
  (await streams.next()).session?.destroy();
  (await streams.next()).respond({ ":status": 202 }, { endStream: true });
  assert.equal((await second).status, 202);
});

test("a client that goes away takes its stream with it, and a deadline ends it too", async (t) => {
  const streams = streamsOf();
  const upstream = await startHttp2Upstream(t, streams.take);
  const plane = await planeTo(t, upstream.port);
  const session = await connectHttp2(plane.url);
  t.after(() => session.destroy());
  const gone = session.request(HEAD);
  gone.on("error", () => undefined);
  const left = await streams.next();
  const closed = once(left, "close");
  gone.close(constants.NGHTTP2_CANCEL);
  await closed;
  assert.equal(left.rstCode, constants.NGHTTP2_CANCEL);
  await plane.set(route("r", [to("b", { backendRequestTimeoutMs: 50 })]));
  const late = fetch(plane.url);
  const hung = await streams.next();
  const cancelled = once(hung, "close");
  assert.equal((await late).status, 504);
  await cancelled;
  assert.equal(hung.rstCode, constants.NGHTTP2_CANCEL);
});

test("an answer of a fast upstream waits for a slow client, and a body for a slow upstream", async (t) => {
  const size = 32 * 1024 * 1024;
  const streams = streamsOf();
  const upstream = await startHttp2Upstream(t, streams.take);
  const plane = await planeTo(t, upstream.port);
  const download = httpRequest({ port: plane.port, host: "127.0.0.1" }).end();
  const source = await streams.next();
  source.respond({ ":status": 200 });
  let sent = 0;
  const piece = Buffer.alloc(65_536);
  const pump = (): void => {
    while (sent < size) {
      sent += piece.length;
      if (!source.write(piece)) return;
    }
    source.end();
  };
  source.on("drain", pump);
  pump();
  const [response] = (await once(download, "response")) as [IncomingMessage];
  await settled(() => sent);
  assert.ok(sent < size / 2, `${sent} bytes left the upstream while nobody read`);
  let received = 0;
  for await (const chunk of response) received += (chunk as Buffer).length;
  assert.equal(received, size);

  const upload = httpRequest({ port: plane.port, host: "127.0.0.1", method: "PUT" });
  let given = 0;
  const feed = (): void => {
    while (given < size) {
      given += piece.length;
      if (!upload.write(piece)) return;
    }
    upload.end();
  };
  upload.on("drain", feed);
  feed();
  const sink = await streams.next();
  sink.pause();
  await settled(() => given);
  assert.ok(given < size, `${given} bytes left the client while nobody read`);
  let arrived = 0;
  sink.on("data", (chunk: Buffer) => (arrived += chunk.length));
  sink.resume();
  await once(sink, "end");
  assert.equal(arrived, size);
  sink.respond({ ":status": 204 }, { endStream: true });
  const [answer] = (await once(upload, "response")) as [IncomingMessage];
  assert.equal(answer.statusCode, 204);
});

test("an upstream that speaks no HTTP/2 is 503", async (t) => {
  const upstream = await startRawUpstream((socket) => {
    socket.on("data", () => socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"));
  });
  t.after(() => upstream.close());
  const plane = await planeTo(t, upstream.port);
  assert.equal((await fetch(plane.url)).status, 503);
});

test("without a fixed version a plain client's own is used, and gRPC is always HTTP/2", async (t) => {
  const upstream = await startHttp2Upstream(t, (stream, headers) => {
    stream.respond({ ":status": 200 });
    stream.end(headers["content-type"] ?? "none");
  });
  const backend = staticBackend("b", upstream.port);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), backend]);
  t.after(() => plane.proxy.close());
  const session = await connectHttp2(plane.url);
  t.after(() => session.destroy());
  assert.equal((await sendHttp2(session, HEAD)).status, 200);
  assert.equal((await fetch(plane.url)).status, 503, "HTTP/1.1 is not understood by this upstream");
  const grpc = await fetch(plane.url, { method: "POST", headers: { "content-type": "application/grpc+proto" } });
  assert.deepEqual([grpc.status, await grpc.text()], [200, "application/grpc+proto"]);
});

test("over TLS the handshake decides, for all who wait for it", async (t) => {
  const authority = createAuthority("upstream authority", validNow());
  const leaf = createLeaf(authority, ["up.test"], validNow());
  const modern = await startHttp2Upstream(
    t,
    (stream) => {
      stream.respond({ ":status": 200 });
      stream.end(stream.session?.alpnProtocol);
    },
    { pair: leaf },
  );
  const tls = create(BackendTlsSchema, { sni: "up.test", caPem: authority.certificate });
  const old = await startTlsUpstream(contextOf(t), ["up.test"]);
  const oldTls = create(BackendTlsSchema, { sni: "up.test", caPem: old.authority });
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", modern.port, { tls })]);
  t.after(() => plane.proxy.close());
  const texts = await Promise.all(Array.from({ length: 20 }, async () => (await fetch(plane.url)).text()));
  assert.deepEqual(new Set(texts), new Set(["h2"]));
  assert.equal(modern.sessions.length, 1);
  await plane.set(staticBackend("b", old.port, { tls: oldTls }));
  const answers = await Promise.all(Array.from({ length: 5 }, async () => (await fetch(plane.url)).text()));
  for (const text of answers) assert.ok((JSON.parse(text) as { protocols: string[] }).protocols.includes("http/1.1"));
  await plane.set(staticBackend("b", old.port, { tls: create(BackendTlsSchema, { sni: "up.test" }) }));
  assert.equal((await fetch(plane.url)).status, 503, "a certificate that is not trusted");
});

test("streams of a client share what an upstream sends, each with its own", async (t) => {
  const upstream = await startHttp2Upstream(t, (stream, headers) => {
    stream.respond({ ":status": 200 });
    stream.pipe(stream);
    stream.setEncoding("utf8");
    stream.on("close", () => assert.ok(headers[":path"]));
  });
  const plane = await planeTo(t, upstream.port);
  const session = await connectHttp2(plane.url);
  t.after(() => session.destroy());
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, at) => {
      const stream = session.request({ ...HEAD, ":method": "POST", ":path": `/${at}` });
      stream.end(`body ${at} `.repeat(1000));
      return answerOf(stream);
    }),
  );
  answers.forEach(({ body }, at) => assert.equal(body.toString(), `body ${at} `.repeat(1000)));
});
