/** Connections to upstreams: which are reused, which are not, and when they end. Against real servers. */
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { BackendTcpSchema, BackendTlsSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { createUpstream } from "../../../../src/proxy/upstream/client/client.ts";
import { PLAIN, type UpstreamTarget } from "../../../../src/proxy/upstream/dial/connection-settings.ts";
import { DestinationGuard } from "../../../../src/proxy/upstream/dial/destination-guard.ts";
import { createResolver } from "../../../../src/proxy/upstream/dial/dns.ts";
import { targetKey } from "../../../../src/proxy/upstream/target-key.ts";
import type { Body, BodySink, BodyStream } from "../../../../src/proxy/exchange/body.ts";
import type { Upstream } from "../../../../src/proxy/upstream/upstream.ts";
import { createSelfSigned } from "../../../support/servers/tls-upstream.ts";

interface Setup {
  readonly upstream: Upstream;
  readonly target: UpstreamTarget;
  /** Connections, oldest first. */
  readonly sockets: Socket[];
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function open(t: TestContext, answer: Answer, idleTimeoutMs?: number): Promise<Setup> {
  const sockets: Socket[] = [];
  const server = createServer({ keepAlive: true }, answer);
  server.on("connection", (socket) => void sockets.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const resolver = createResolver();
  const idle = idleTimeoutMs === undefined ? {} : { idleTimeoutMs };
  const upstream = createUpstream({
    resolver,
    guard: new DestinationGuard(),
    connectTimeoutMs: 5_000,
    ...idle,
  });
  t.after(() => {
    upstream.close();
    resolver.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server's address is one
  return { upstream, target: { ...PLAIN, host: "127.0.0.1", port, unixPath: "" }, sockets };
}

/** @returns what the answer says, once it is there in full */
async function send(
  { upstream, target }: Pick<Setup, "upstream" | "target">,
  method = "GET",
  requestBody: Body = null,
): Promise<string> {
  const headers = new HeaderList(["host", "a.test"]);
  const limits = { deadlineAtMs: undefined, timeoutCode: "request_timeout" as const };
  const request = { version: "http1" as const, method, path: "/", headers, body: requestBody, ...limits };
  const answer = await upstream.send(target, request);
  return new Promise((resolve, reject) => {
    let received = "";
    const { body } = answer;
    if (body === null || Buffer.isBuffer(body)) resolve(received);
    else
      body.read({
        data: (chunk) => ((received += chunk.toString()), true),
        end: () => resolve(received),
        error: reject,
      });
  });
}

/** Which of the connections a request came by. */
const place = (sockets: readonly Socket[]): Answer => {
  return (request, response) => void response.end(String(sockets.indexOf(request.socket)));
};

test("the connection that was used last is used first", async (t) => {
  for (const last of [0, 1]) {
    const held: (() => void)[] = [];
    const both = Promise.withResolvers<void>();
    const setup: Setup = await open(t, (request, response) => {
      const answer = (): void => place(setup.sockets)(request, response);
      if (held.length === 2) answer();
      else if (held.push(answer) === 2) both.resolve();
    });
    const requests = [send(setup), send(setup)] as const;
    await both.promise;
    // Which request came by which connection is up to the system.
    const first = Promise.race(requests);
    held[1 - last]?.();
    const done = await first;
    held[last]?.();
    const answers = await Promise.all(requests);
    const later = answers.find((answer) => answer !== done);
    assert.equal(await send(setup), later);
    assert.equal(setup.sockets.length, 2);
  }
});

test("an idle connection is closed when its time is over", async (t) => {
  const setup: Setup = await open(t, (request, response) => place(setup.sockets)(request, response), 100);
  assert.equal(await send(setup), "0");
  await once(setup.sockets[0] as Socket, "close");
  assert.equal(await send(setup), "1");
});

test("a request that finds its connection closed is sent again, once, unless it could have done something", async (t) => {
  let requests = 0;
  const setup: Setup = await open(t, (request, response) => {
    if (++requests % 2 === 0) request.socket.destroy();
    else place(setup.sockets)(request, response);
  });
  assert.equal(await send(setup), "0");
  assert.equal(await send(setup), "1", "the second one died with the first connection");
  await assert.rejects(send(setup, "POST"), { code: "upstream_broken" });
  assert.equal(requests, 4);
});

test("a request whose body was still to come is sent again whatever its method, with all of the body", async (t) => {
  const body = new HandMade();
  let died = 0;
  const setup = await openSecure(t, (request, response) => {
    if (request.method === "POST" && died++ === 0) request.socket.destroy();
    else void answerWithBody(request, response);
  });
  setup.server.on("connection", () => {
    if (died === 0) return;
    // There is no handshake yet, so that the body finds no connection.
    assert.equal(body.sink?.data(Buffer.from("early,")), false, "nothing more is wanted meanwhile");
  });
  body.onResume = () => {
    body.sink?.data(Buffer.from("late"));
    body.sink?.end([]);
  };
  assert.equal(await send(setup), "GET ");
  assert.equal(await send(setup, "POST", body), "POST early,late");
  assert.equal(setup.connections(), 2);
});

test("a body that ends while a connection is opened for it is sent in full", async (t) => {
  const body = new HandMade();
  let died = 0;
  const setup = await openSecure(t, (request, response) => {
    if (request.method === "POST" && died++ === 0) request.socket.destroy();
    else void answerWithBody(request, response);
  });
  setup.server.on("connection", () => {
    if (died === 0) return;
    body.sink?.data(Buffer.from("all of it"));
    body.sink?.end([]);
  });
  assert.equal(await send(setup), "GET ");
  assert.equal(await send(setup, "POST", body), "POST all of it");
});

test("a request of which some of the body has left is not sent again", async (t) => {
  for (const method of ["POST", "PUT"]) {
    const body = new HandMade();
    body.onRead = () => void body.sink?.data(Buffer.from("some"));
    let requests = 0;
    const setup = await openSecure(t, (request, response) => {
      if (++requests > 1) request.socket.destroy();
      else response.end("fine");
    });
    assert.equal(await send(setup), "fine");
    await assert.rejects(send(setup, method, body), { code: "upstream_broken" });
    assert.equal(requests, 2);
  }
});

test("connections to a name over TLS are reused too", async (t) => {
  const setup = await openSecure(t, (_request, response) => void response.end("fine"));
  for (let at = 0; at < 3; at++) assert.equal(await send(setup), "fine");
  assert.equal(setup.connections(), 1);
});

async function answerWithBody(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.end(`${request.method} ${await text(request)}`);
}

/** A body that comes when the test says so. */
class HandMade implements BodyStream {
  sink: BodySink | undefined;
  onRead: () => void = () => undefined;
  onResume: () => void = () => undefined;

  read(sink: BodySink): void {
    this.sink = sink;
    this.onRead();
  }

  resume(): void {
    this.onResume();
  }

  destroy(): void {
    this.sink = undefined;
  }
}

interface SecureSetup extends Pick<Setup, "upstream" | "target"> {
  readonly server: SecureServer;
  /** How many handshakes there were. */
  connections(): number;
}

async function openSecure(t: TestContext, answer: Answer): Promise<SecureSetup> {
  const { certificate, key } = createSelfSigned("local", "DNS:localhost");
  let connections = 0;
  const server = createSecureServer({ cert: certificate, key }, answer);
  server.on("secureConnection", () => connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const resolver = createResolver({ lookup: () => Promise.resolve({ addresses: ["127.0.0.1"], ttlMs: 60_000 }) });
  const upstream = createUpstream({ resolver, guard: new DestinationGuard(), connectTimeoutMs: 5_000 });
  t.after(() => {
    upstream.close();
    resolver.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server's address is one
  const tls = create(BackendTlsSchema, { caPem: certificate });
  const target = { ...PLAIN, host: "localhost", port, unixPath: "", tls };
  return { upstream, target, server, connections: () => connections };
}

test("targets share connections when they are reached in the same way, and only then", () => {
  const target: UpstreamTarget = { ...PLAIN, host: "a.test", port: 443, unixPath: "" };
  const tls = (sni: string) => create(BackendTlsSchema, { sni });
  const proxy = (key: string) => ({ key, alwaysTunnels: false, resolve: () => assert.fail() });
  const same = [
    [target, { ...target }],
    [
      { ...target, tls: tls("b") },
      { ...target, tls: tls("b") },
    ],
    [
      { ...target, proxy: proxy("p") },
      { ...target, proxy: proxy("p") },
    ],
  ] as const;
  for (const [one, other] of same) assert.equal(targetKey(one), targetKey(other));
  const apart: readonly UpstreamTarget[] = [
    target,
    { ...target, host: "b.test" },
    { ...target, port: 80 },
    { ...target, host: "", port: 0, unixPath: "/a.sock" },
    { ...target, tls: tls("") },
    { ...target, tls: tls("b.test") },
    { ...target, tls: create(BackendTlsSchema, { caPem: "authority" }) },
    { ...target, tls: create(BackendTlsSchema, { trustNothing: true }) },
    { ...target, tls: create(BackendTlsSchema, { certificatePem: "own" }) },
    { ...target, tls: create(BackendTlsSchema, { alpn: ["http/1.1"] }) },
    { ...target, tls: create(BackendTlsSchema, { subjectAltNames: ["c.test"] }) },
    { ...target, tls: create(BackendTlsSchema, { verify: 1 }) },
    { ...target, tls: create(BackendTlsSchema, { keyExchangeGroups: ["P-256"] }) },
    { ...target, tcp: create(BackendTcpSchema, { connectTimeoutMs: 1 }) },
    { ...target, tcp: create(BackendTcpSchema, { keepalive: { probes: 3 } }) },
    { ...target, proxy: proxy("p") },
    { ...target, proxy: proxy("q") },
  ];
  assert.equal(new Set(apart.map(targetKey)).size, apart.length);
});
