/** Requests to leave HTTP/1.1 through real sockets: WebSocket with the client of the runtime, and raw ones. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { rawClient, type RawClient } from "../../support/gateway/data-plane.ts";
import {
  documents,
  GATEWAY,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { answerOf, connectHttp2 } from "../../support/clients/http2.ts";
import { policy, routeRef } from "../../support/proofs/policy-places.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { startWebSocketEcho } from "../../support/servers/web-socket.ts";

interface Served {
  readonly gateway: TestGateway;
  readonly port: number;
}

function contextOf(t: TestContext): ProofContext {
  return { after: (clean) => t.after(clean) };
}

/** @param traffic flow YAML of `spec.traffic` on the route */
async function serve(t: TestContext, upstream: number, traffic?: string): Promise<Served> {
  const policies = traffic === undefined ? [] : [policy("p", { refs: routeRef("web"), says: `traffic: {${traffic}}` })];
  const manifests = documents(GATEWAY, staticBackend("web", upstream), route("web", "web"), ...policies);
  const gateway = await startGateway(contextOf(t), manifests);
  assert.deepEqual(gateway.problems(), []);
  return { gateway, port: Number(new URL(gateway.url()).port) };
}

function raw(t: TestContext, port: number, bytes: string): RawClient {
  const client = rawClient(port, bytes);
  t.after(() => void client.socket.destroy());
  return client;
}

/** An upstream that says what it is told to as soon as a head has arrived; then whatever `then` does. */
async function scripted(t: TestContext, answer: string, then?: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    t.after(() => void socket.destroy());
    socket.on("error", () => undefined);
    let text = "";
    const onData = (chunk: Buffer): void => {
      text += chunk.toString("latin1");
      if (!text.includes("\r\n\r\n")) return;
      socket.off("data", onData);
      socket.write(answer);
      then?.(socket);
    };
    socket.on("data", onData);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const ASK = "GET /chat?a=1 HTTP/1.1\r\nhost: a.test\r\nconnection: keep-alive, Upgrade\r\nupgrade: bytes\r\n";
const AGREE = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: Bytes\r\n\r\n";

test("a WebSocket is opened, and messages of every size go both ways", async (t) => {
  const echo = await startWebSocketEcho(contextOf(t));
  const { port } = await serve(t, echo.port);
  const socket = new WebSocket(`ws://127.0.0.1:${port}/chat?a=1`);
  await once(socket, "open");
  for (const text of ["one", "two".repeat(100), "x".repeat(1_000_000)]) {
    const answered = once(socket, "message") as Promise<[MessageEvent<string>]>;
    socket.send(text);
    assert.equal((await answered)[0].data, text);
  }
  const closed = once(socket, "close") as Promise<[CloseEvent]>;
  socket.close(1000);
  assert.equal((await closed)[0].wasClean, true);
  const [request] = echo.seen;
  assert.equal(request?.url, "/chat?a=1");
  assert.equal(request.headers.connection, "upgrade");
  assert.equal(request.headers.upgrade, "websocket");
  assert.equal(request.headers["x-forwarded-proto"], "http");
});

test("policies run on the request, and what they refuse is answered in HTTP", async (t) => {
  const echo = await startWebSocketEcho(contextOf(t));
  const rule = "authorization: {action: Deny, policy: {matchExpressions: ['request.path == \"/no\"']}}";
  const marked = "headerModifiers: {response: {set: [{name: x-mark, value: passed}]}}";
  const { port } = await serve(t, echo.port, `${rule}, ${marked}`);
  const ask = (path: string): string => ASK.replace("/chat?a=1", path).replace("bytes", "websocket");
  const refused = raw(t, port, `${ask("/no")}sec-websocket-key: abc\r\n\r\n`);
  assert.match(await refused.closed(), /^HTTP\/1\.1 403 [^]*connection: close[^]*\r\n\r\nauthorization failed$/i);
  assert.equal(echo.seen.length, 0);
  const taken = raw(t, port, `${ask("/yes")}sec-websocket-key: abc\r\n\r\n`);
  const [head] = await taken.until(/^HTTP\/1\.1 101 Switching Protocols\r\n[^]*\r\n\r\n/);
  assert.match(head, /x-mark: passed\r\n/);
  assert.match(head, /x-upstream: echo\r\n/);
  assert.match(head, /connection: upgrade\r\nupgrade: WebSocket\r\n/);
});

test("what either side says at once behind its head is not lost", async (t) => {
  const upstream = await scripted(t, `${AGREE}welcome `, (socket) => {
    socket.on("data", (chunk: Buffer) => void socket.write(chunk.toString().toUpperCase()));
  });
  const { port } = await serve(t, upstream);
  const client = raw(t, port, `${ASK}\r\nearly `);
  await client.until(/\r\n\r\nwelcome EARLY $/);
  client.socket.write("late");
  await client.until(/welcome EARLY LATE$/);
});

test("an upstream that does not want to is answered for as usual", async (t) => {
  const echo = await startWebSocketEcho(contextOf(t));
  const { port } = await serve(t, await scripted(t, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno"));
  const client = raw(t, port, `${ASK}\r\n`);
  assert.match(await client.closed(), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nno$/);
  assert.equal(echo.seen.length, 0);
});

test("an upstream that goes over to another protocol than it was asked for is broken off with 502", async (t) => {
  for (const other of ["upgrade: other\r\n", ""]) {
    const broken = Promise.withResolvers<void>();
    const answer = `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n${other}\r\n`;
    const upstream = await scripted(t, answer, (socket) => socket.on("end", () => broken.resolve()).resume());
    const { port } = await serve(t, upstream);
    assert.match(await raw(t, port, `${ASK}\r\n`).closed(), /^HTTP\/1\.1 502 [^]*request upgrade failed$/);
    await broken.promise;
  }
});

test("each direction ends for itself", async (t) => {
  const upstream = await scripted(t, AGREE, (socket) => {
    socket.on("data", (chunk: Buffer) => void socket.write(chunk));
    socket.on("end", () => socket.end("the last word"));
  });
  const { port } = await serve(t, upstream);
  const client = raw(t, port, `${ASK}\r\n`);
  await client.until(/^HTTP\/1\.1 101 /);
  client.socket.end("mine, ");
  assert.match(await client.closed(), /\r\n\r\nmine, the last word$/);
});

test("the end of the upstream leaves the client its say", async (t) => {
  const heard = Promise.withResolvers<string>();
  const upstream = await scripted(t, AGREE, (socket) => {
    let text = "";
    socket.end("bye");
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.on("end", () => heard.resolve(text));
  });
  const { port } = await serve(t, upstream);
  const client = raw(t, port, `${ASK}\r\n`);
  client.socket.allowHalfOpen = true;
  await client.until(/bye$/);
  client.socket.end("still here");
  assert.equal(await heard.promise, "still here");
});

test("when one side breaks, the other is broken off", async (t) => {
  const gone = Promise.withResolvers<void>();
  const upstream = await scripted(t, AGREE, (socket) => {
    socket.on("data", (chunk: Buffer) => {
      if (chunk.toString() === "break") socket.resetAndDestroy();
    });
    socket.on("end", () => gone.resolve());
  });
  const { port } = await serve(t, upstream);
  const left = raw(t, port, `${ASK}\r\n`);
  await left.until(/^HTTP\/1\.1 101 /);
  left.socket.resetAndDestroy();
  await gone.promise;
  const other = raw(t, port, `${ASK}\r\n`);
  await other.until(/^HTTP\/1\.1 101 /);
  other.socket.write("break");
  await other.closed();
});

test("a request with a body, behind another one, or of HTTP/1.0 does not leave HTTP", async (t) => {
  const echo = await startWebSocketEcho(contextOf(t));
  const { gateway, port } = await serve(t, echo.port);
  const body = raw(t, port, `${ASK}content-length: 2\r\n\r\nhi`);
  assert.match(await body.closed(), /^HTTP\/1\.1 501 /);
  const second = raw(t, port, `GET / HTTP/1.1\r\nhost: a.test\r\n\r\n${ASK}\r\n`);
  assert.match(await second.closed(), /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 501 /);
  const old = raw(t, port, `${ASK.replace("HTTP/1.1", "HTTP/1.0")}\r\n`);
  await old.until(/^HTTP\/1\.[01] 200 /);
  const offer = raw(t, port, `${ASK.replace("bytes", "h2c")}\r\n`);
  await offer.until(/^HTTP\/1\.1 200 /);
  assert.equal(echo.seen.length, 0);
  assert.equal((await call(gateway.url())).status, 200);
});

test("the time limit of a request ends when its tunnel begins, and not before", async (t) => {
  const echo = await startWebSocketEcho(contextOf(t));
  const limited = await serve(t, echo.port, "timeouts: {request: 2s}");
  const socket = new WebSocket(`ws://127.0.0.1:${limited.port}/`);
  await once(socket, "open");
  const silent = await serve(t, await scripted(t, ""), "timeouts: {request: 2s}");
  // Takes longer than the limit of the other one.
  assert.match(await raw(t, silent.port, `${ASK}\r\n`).closed(), /^HTTP\/1\.1 504 /);
  const answered = once(socket, "message") as Promise<[MessageEvent<string>]>;
  socket.send("alive");
  assert.equal((await answered)[0].data, "alive");
  socket.close();
  await once(socket, "close");
});

const EXTENDED = {
  ":method": "CONNECT",
  ":protocol": "bytes",
  ":scheme": "http",
  ":path": "/chat",
  ":authority": "a.test",
};

test("extended CONNECT of HTTP/2 becomes an upgrade of the upstream, with bytes both ways", async (t) => {
  const upstream = await scripted(t, `${AGREE}welcome `, (socket) => {
    socket.on("data", (chunk: Buffer) => void socket.write(chunk.toString().toUpperCase()));
    socket.on("end", () => socket.end("BYE"));
  });
  const { gateway } = await serve(t, upstream);
  const session = await connectHttp2(gateway.url());
  t.after(() => void session.destroy());
  await new Promise((resolve) => session.ping(resolve));
  assert.equal(session.remoteSettings.enableConnectProtocol, true);
  const stream = session.request(EXTENDED);
  stream.end("hello ");
  const { status, body } = await answerOf(stream);
  assert.deepEqual([status, body.toString()], [200, "welcome HELLO BYE"]);
});

test("a WebSocket over HTTP/2 gets the handshake that its upstream needs", async (t) => {
  const echo = await startWebSocketEcho(contextOf(t));
  const { gateway } = await serve(t, echo.port);
  const session = await connectHttp2(gateway.url());
  t.after(() => void session.destroy());
  await new Promise((resolve) => session.ping(resolve));
  const stream = session.request({ ...EXTENDED, ":protocol": "websocket" }, { endStream: false });
  const [headers] = (await once(stream, "response")) as [Record<string, string>];
  assert.deepEqual(
    [headers[":status"], headers["x-upstream"], headers["sec-websocket-accept"]],
    [200, "echo", undefined],
  );
  assert.match(String(echo.seen[0]?.headers["sec-websocket-key"]), /^[A-Za-z0-9+/]{22}==$/);
  // "hi", masked with zeros.
  stream.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
  const [message] = (await once(stream, "data")) as [Buffer];
  assert.deepEqual([...message], [0x81, 2, 0x68, 0x69]);
  stream.close();
});

test("an upstream that refuses an extended CONNECT is no success, and plain CONNECT is refused", async (t) => {
  const { gateway } = await serve(t, await scripted(t, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno"));
  const session = await connectHttp2(gateway.url());
  t.after(() => void session.destroy());
  await new Promise((resolve) => session.ping(resolve));
  assert.equal((await answerOf(session.request(EXTENDED))).status, 502);
  assert.equal((await answerOf(session.request({ ":method": "CONNECT", ":authority": "a.test:443" }))).status, 405);
});
