/** Clients that ask for more than they want, or want more than they take: each is bounded, and the others are served. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
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
import {
  codeOf,
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  frameClient,
  headers,
  statusOf,
  type FrameClient,
} from "../../support/clients/http2-frames.ts";
import { startUpstream, type TestUpstream } from "../../support/servers/upstream.ts";

const ENHANCE_YOUR_CALM = 11;
const CANCEL = Buffer.from([0, 0, 0, 8]);

interface Stage {
  readonly port: number;
  readonly upstream: TestUpstream;
  /** Answers to /hang that were asked for and not given. */
  readonly hanging: ServerResponse[];
}

/** /big answers with 4 MiB, /hang when the test says so, anything else at once. */
async function stage(t: TestContext): Promise<Stage> {
  const hanging: ServerResponse[] = [];
  const upstream = await startUpstream((request, response) => {
    if (request.url === "/hang") hanging.push(response);
    else if (request.url === "/deaf") request.socket.pause();
    else response.end(request.url === "/big" ? Buffer.alloc(4_194_304, 97) : "served");
  });
  t.after(() => upstream.close());
  const backend = serviceBackend("backend/default/b", upstream.port, HttpVersion.HTTP1);
  const found = endpoints("backend/default/b", [upstream.port]);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), backend, found]);
  t.after(() => plane.proxy.close());
  return { port: plane.port, upstream, hanging };
}

function client(t: TestContext, port: number, settings?: Buffer): FrameClient {
  const made = frameClient(port, settings);
  t.after(() => void made.socket.destroy());
  return made;
}

const get = (path: string): string[] => [":method", "GET", ":scheme", "http", ":authority", "a", ":path", path];
const isGoaway = ({ type }: { type: number }): boolean => type === FRAME.goaway;

async function isServed(port: number): Promise<void> {
  const other = rawClient(port, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  assert.match(await other.closed(), /served$/);
}

/** @returns the code of the GOAWAY that ends the connection */
async function endedWith(made: FrameClient): Promise<number> {
  const found = await made.until(isGoaway);
  await made.closed;
  assert.ok(found !== undefined, "the connection ended without a word");
  return codeOf(found);
}

test("a client that resets what it asked for is told to calm down, and the upstream is spared", async (t) => {
  const { port, hanging } = await stage(t);
  const made = client(t, port);
  for (let at = 0; at < 150; at++)
    made.send(headers(2 * at + 1, get("/hang")), frame(FRAME.reset, 0, 2 * at + 1, CANCEL));
  assert.equal(await endedWith(made), ENHANCE_YOUR_CALM);
  assert.ok(hanging.length <= 150);
  await isServed(port);
});

test("a client that makes the gateway reset what it asked for is told so too", async (t) => {
  const { port } = await stage(t);
  const made = client(t, port);
  for (let at = 0; at < 300; at++)
    made.send(headers(2 * at + 1, get("/hang")), frame(FRAME.windowUpdate, 0, 2 * at + 1, Buffer.alloc(4)));
  await made.closed;
  await isServed(port);
});

test("a client that cancels much but uses more keeps its connection", async (t) => {
  const { port } = await stage(t);
  const made = client(t, port);
  for (let at = 0; at < 150; at++) {
    const answered = 4 * at + 1;
    made.send(headers(answered, get("/")));
    const served = await made.until(({ type, stream }) => type === FRAME.headers && stream === answered);
    assert.ok(served !== undefined && statusOf(served) === 200);
    made.send(headers(answered + 2, get("/hang")), frame(FRAME.reset, 0, answered + 2, CANCEL));
  }
  made.send(headers(1_001, get("/")));
  assert.ok((await made.until(({ type, stream }) => type === FRAME.headers && stream === 1_001)) !== undefined);
});

test("a body in more pieces than it is worth is not kept", async (t) => {
  const { port } = await stage(t);
  const made = client(t, port);
  // The windows are those of the settings once these are acknowledged.
  await made.until(({ type }) => type === FRAME.windowUpdate);
  // Nobody reads it: the upstream has stopped.
  const piece = Buffer.concat(Array.from({ length: 1_000 }, () => frame(FRAME.data, 0, 1, "a")));
  made.send(headers(1, [":method", "POST", ":scheme", "http", ":authority", "a", ":path", "/deaf"], 0));
  for (let at = 0; at < 600 && made.socket.writable; at++) made.send(piece);
  assert.equal(await endedWith(made), ENHANCE_YOUR_CALM);
  await isServed(port);
});

test("pings and settings without end are no conversation", async (t) => {
  const { port } = await stage(t);
  for (const each of [frame(FRAME.ping, 0, 0, Buffer.alloc(8)), frame(FRAME.settings, 0, 0)]) {
    const made = client(t, port);
    for (let at = 0; at < 1_100; at++) made.send(each);
    assert.equal(await endedWith(made), ENHANCE_YOUR_CALM);
  }
  await isServed(port);
});

test("a head that is continued without end is refused", async (t) => {
  const { port } = await stage(t);
  const made = client(t, port);
  made.send(frame(FRAME.headers, END_STREAM, 1, Buffer.from([0x82])));
  for (let at = 0; at < 1_000; at++) made.send(frame(FRAME.continuation, 0, 1));
  made.send(frame(FRAME.continuation, END_HEADERS, 1));
  assert.notEqual(await endedWith(made), 0);
  await isServed(port);
});

test("two hundred requests at a time are served, and a client that goes on is not", async (t) => {
  const { port, hanging } = await stage(t);
  const made = client(t, port);
  for (let at = 0; at < 200; at++) made.send(headers(2 * at + 1, get("/hang")));
  while (hanging.length < 200) await new Promise((resolve) => setImmediate(resolve));
  for (const response of hanging.splice(0)) response.end("late");
  assert.ok((await made.until(({ type, stream }) => type === FRAME.headers && stream === 399)) !== undefined);
  for (let at = 200; at < 420; at++) made.send(headers(2 * at + 1, get("/hang")));
  assert.notEqual(await endedWith(made), 0);
  assert.ok(hanging.length <= 200);
  await isServed(port);
});

test("a client that opens no window gets nothing, holds nothing up, and gets all of it once it does", async (t) => {
  const { port } = await stage(t);
  const made = client(t, port, Buffer.from([0, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]));
  for (let at = 0; at < 20; at++) made.send(headers(2 * at + 1, get("/big")));
  await made.until(({ type, stream }) => type === FRAME.headers && stream === 39);
  await isServed(port);
  assert.equal(made.frames.filter(({ type, payload }) => type === FRAME.data && payload.length > 0).length, 0);
  const wide = Buffer.from([0x7f, 0, 0, 0]);
  made.send(frame(FRAME.windowUpdate, 0, 0, wide), frame(FRAME.windowUpdate, 0, 39, wide));
  await made.until(({ type, stream, flags }) => type === FRAME.data && stream === 39 && (flags & END_STREAM) !== 0);
  const sizes = made.frames.filter(({ type, stream }) => type === FRAME.data && stream === 39);
  assert.equal(
    sizes.reduce((sum, { payload }) => sum + payload.length, 0),
    4_194_304,
  );
});

test("requests that are sent ahead are served one at a time, and not without end", async (t) => {
  const { port, upstream, hanging } = await stage(t);
  const few = rawClient(port, "GET /hang HTTP/1.1\r\nHost: a\r\n\r\n".repeat(90));
  while (hanging.length < 1) await new Promise((resolve) => setImmediate(resolve));
  await isServed(port);
  assert.equal(hanging.length, 1);
  for (let at = 0; at < 90; at++) {
    while (hanging.length <= at) await new Promise((resolve) => setImmediate(resolve));
    hanging[at]?.end(`answer ${at}.`);
  }
  await few.until(/answer 89\.$/);
  few.socket.destroy();
  const many = rawClient(port, "GET /hang HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1_000));
  assert.equal(await many.closed(), "");
  assert.ok(upstream.requests.filter(({ url }) => url === "/hang").length <= 91);
  await isServed(port);
});

test("a client that resets its connection at the worst moment disturbs nobody", async (t) => {
  const { port } = await stage(t);
  const requests = [
    "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
    "GET /hang HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "GET / HTTP/1.1\r\nX-A : 1\r\n\r\n",
    "POST /hang HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "PRI * HT",
    "GET /big HTTP/1.1\r\nHost: a\r\n\r\n",
  ];
  for (const request of requests)
    for (const late of [false, true]) {
      const { socket, closed } = rawClient(port, request);
      if (late) await new Promise((resolve) => setTimeout(resolve, 10));
      else await new Promise<void>((resolve) => void socket.once("ready", resolve));
      socket.resetAndDestroy();
      await closed();
    }
  await isServed(port);
});
