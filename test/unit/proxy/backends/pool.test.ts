/** Connections to upstreams: which are reused, which are not, and when they end. Against real servers. */
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { BackendTcpSchema, BackendTlsSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { createUpstream } from "../../../../src/proxy/backends/client.ts";
import { PLAIN } from "../../../../src/proxy/backends/connection.ts";
import { createResolver } from "../../../../src/proxy/backends/dns.ts";
import { targetKey } from "../../../../src/proxy/backends/target-key.ts";
import type { Upstream, UpstreamTarget } from "../../../../src/proxy/backends/upstream.ts";
import { createSelfSigned } from "../../../support/tls-upstream.ts";

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
  const upstream = createUpstream({ resolver, connectTimeoutMs: 5_000, ...idle });
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
async function send({ upstream, target }: Pick<Setup, "upstream" | "target">, method = "GET"): Promise<string> {
  const headers = new HeaderList(["host", "a.test"]);
  const limits = { deadlineAtMs: undefined, timeoutCode: "request_timeout" as const };
  const answer = await upstream.send(target, { version: "http1", method, path: "/", headers, body: null, ...limits });
  return new Promise((resolve, reject) => {
    let text = "";
    const { body } = answer;
    if (body === null || Buffer.isBuffer(body)) resolve(text);
    else
      body.read({
        data: (chunk) => ((text += chunk.toString()), true),
        end: () => resolve(text),
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

test("connections to a name over TLS are reused too", async (t) => {
  const { certificate, key } = createSelfSigned("local", "DNS:localhost");
  let connections = 0;
  const server = createSecureServer({ cert: certificate, key }, (_request, response) => void response.end("fine"));
  server.on("secureConnection", () => connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const resolver = createResolver({ lookup: () => Promise.resolve({ addresses: ["127.0.0.1"], ttlMs: 60_000 }) });
  const upstream = createUpstream({ resolver, connectTimeoutMs: 5_000 });
  t.after(() => {
    upstream.close();
    resolver.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server's address is one
  const tls = create(BackendTlsSchema, { caPem: certificate });
  const target = { ...PLAIN, host: "localhost", port, unixPath: "", tls };
  for (let at = 0; at < 3; at++) assert.equal(await send({ upstream, target }), "fine");
  assert.equal(connections, 1);
});

test("targets share connections when they are reached in the same way, and only then", () => {
  const target: UpstreamTarget = { ...PLAIN, host: "a.test", port: 443, unixPath: "" };
  const tls = (sni: string) => create(BackendTlsSchema, { sni });
  const proxy = (key: string) => ({ key, alwaysTunnels: false, reach: () => assert.fail() });
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
