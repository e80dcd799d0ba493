/** How connections of each protocol end when the data plane or their Bind goes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { HttpVersion } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { createShutdown } from "../../../src/runtime/shutdown.ts";
import type { ProxyOptions } from "../../../src/proxy/proxy.ts";
import {
  BIND,
  type DataPlane,
  endpoints,
  listener,
  rawClient,
  route,
  serviceBackend,
  startDataPlane,
  staticBackend,
  to,
} from "../../support/gateway/data-plane.ts";
import { call } from "../../support/clients/http.ts";
import { codeOf, FRAME, frame, frameClient, headers, statusOf } from "../../support/clients/http2-frames.ts";
import { testClock } from "../../support/gateway/test-clock.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { startWebSocketEcho } from "../../support/servers/web-socket.ts";

const REQUEST = "GET / HTTP/1.1\r\nhost: a.test\r\n\r\n";
const HEAD = [":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a.test"];
const LARGEST = 2 ** 31 - 1;

/** A data plane whose upstream answers when it is told to. */
async function planeWith(
  t: TestContext,
  options: Partial<ProxyOptions> = {},
): Promise<DataPlane & { readonly waiting: (() => void)[]; arrived(count: number): Promise<void> }> {
  const waiting: (() => void)[] = [];
  const upstream = await startUpstream((request, response) => {
    if (request.url === "/at-once") response.end("hello");
    else waiting.push(() => response.end("late"));
  });
  t.after(() => upstream.close());
  const backend = serviceBackend("backend/default/b", 80, HttpVersion.HTTP1);
  const ports = endpoints("backend/default/b", [upstream.port]);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), backend, ports], options);
  t.after(() => plane.proxy.close());
  const arrived = async (count: number): Promise<void> => {
    while (waiting.length < count) await new Promise(setImmediate);
  };
  return { ...plane, waiting, arrived };
}

test("HTTP/1 answers say close from the announcement on, while new connections are taken, and none after it", async (t) => {
  const plane = await planeWith(t);
  const busy = rawClient(plane.port, REQUEST);
  await plane.arrived(1);
  const idle = rawClient(plane.port, "GET /at-once HTTP/1.1\r\nhost: a.test\r\n\r\n");
  await idle.until(/hello$/);
  plane.proxy.announce();
  plane.waiting[0]?.();
  assert.match(await busy.closed(), /connection: close\r\n[^]*late$/);
  // A client that was idle is told with its next answer, and a new one with its first.
  idle.socket.write("GET /at-once HTTP/1.1\r\nhost: a.test\r\n\r\n");
  assert.match(await idle.closed(), /hello[^]*connection: close\r\n[^]*hello$/);
  const late = rawClient(plane.port, "GET /at-once HTTP/1.1\r\nhost: a.test\r\n\r\n");
  assert.match(await late.closed(), /connection: close\r\n[^]*hello$/);
  const kept = rawClient(plane.port, REQUEST);
  await plane.arrived(2);
  const drained = plane.proxy.drain();
  await assert.rejects(call(plane.url), /ECONNREFUSED/);
  plane.waiting[1]?.();
  assert.match(await kept.closed(), /late$/);
  await drained;
});

test("an HTTP/2 client hears first that it shall open no more, then what was served, and loses nothing", async (t) => {
  const clock = testClock();
  const plane = await planeWith(t, { clock });
  const client = frameClient(plane.port);
  t.after(() => client.socket.destroy());
  client.send(headers(1, HEAD));
  await plane.arrived(1);
  plane.proxy.announce();
  const notice = await client.until(({ type }) => type === FRAME.goaway);
  assert.deepEqual([notice?.payload.readUInt32BE(0), notice && codeOf(notice)], [LARGEST, 0]);
  // Sent before the notice was read, as far as the data plane can know.
  client.send(headers(3, HEAD));
  await plane.arrived(2);
  await clock.advance(1_000);
  const final = await client.until(({ type, payload }) => type === FRAME.goaway && payload.readUInt32BE(0) !== LARGEST);
  assert.deepEqual([final?.payload.readUInt32BE(0), final && codeOf(final)], [3, 0]);
  for (const end of plane.waiting) end();
  await client.closed;
  for (const stream of [1, 3]) {
    const answer = client.frames.find((each) => each.stream === stream && each.type === FRAME.headers);
    assert.equal(answer && statusOf(answer), 200);
    const data = client.frames.filter((each) => each.stream === stream && each.type === FRAME.data);
    assert.equal(Buffer.concat(data.map(({ payload }) => payload)).toString(), "late");
  }
});

test("an HTTP/2 client that comes after the announcement is served, and told the same", async (t) => {
  const clock = testClock();
  const plane = await planeWith(t, { clock });
  plane.proxy.announce();
  const client = frameClient(plane.port);
  t.after(() => client.socket.destroy());
  client.send(headers(1, HEAD));
  const notice = await client.until(({ type }) => type === FRAME.goaway);
  assert.equal(notice?.payload.readUInt32BE(0), LARGEST);
  assert.equal(client.frames[0]?.type, FRAME.settings);
  await plane.arrived(1);
  plane.waiting[0]?.();
  await client.until(({ type, stream }) => type === FRAME.data && stream === 1);
  await clock.advance(1_000);
  await client.closed;
});

test("an HTTP/2 client that never agrees on settings is let go all the same", async (t) => {
  const clock = testClock();
  const plane = await planeWith(t, { clock });
  const socket = connect({ port: plane.port, host: "127.0.0.1" });
  t.after(() => socket.destroy());
  socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(FRAME.settings, 0, 0)]));
  await once(socket, "data");
  plane.proxy.announce();
  await clock.advance(1_000);
  await once(socket.resume(), "close");
});

test("a removed Bind serves what is under way and says close, and idle connections end", async (t) => {
  const clock = testClock();
  const plane = await planeWith(t, { clock });
  const busy = rawClient(plane.port, REQUEST);
  await plane.arrived(1);
  const idle = rawClient(plane.port, "GET /at-once HTTP/1.1\r\nhost: a.test\r\n\r\n");
  await idle.until(/hello$/);
  const http2 = frameClient(plane.port);
  http2.send(headers(1, HEAD));
  await plane.arrived(2);
  await plane.proxy.apply({ set: [], removed: [{ type: "Bind", key: BIND }] });
  await assert.rejects(call(plane.url), /ECONNREFUSED/);
  await idle.closed();
  for (const end of plane.waiting) end();
  assert.match(await busy.closed(), /connection: close\r\n[^]*late$/);
  assert.ok(await http2.until(({ type, stream }) => type === FRAME.data && stream === 1));
  await clock.advance(1_000);
  await http2.closed;
});

test("an upgraded connection is not ended by a drain, and by the end of the time for it", async (t) => {
  const echo = await startWebSocketEcho(t);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", echo.port)]);
  t.after(() => plane.proxy.close());
  const key = Buffer.alloc(16).toString("base64");
  const client = rawClient(
    plane.port,
    `GET / HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n\r\n`,
  );
  await client.until(/101 Switching[^]*\r\n\r\n/);
  const clock = testClock();
  const times = { minMs: 2_000, maxMs: 5_000 };
  const shutdown = createShutdown({ proxy: plane.proxy, times, clock, begun: () => undefined });
  const accepted = shutdown.accepted();
  await clock.advance(2_000);
  await accepted;
  await assert.rejects(call(plane.url), /ECONNREFUSED/);
  // Masked "hi", and its echo.
  client.socket.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
  await client.until(/hi$/);
  await clock.advance(3_000);
  await shutdown.over();
  plane.proxy.close();
  await client.closed();
});
