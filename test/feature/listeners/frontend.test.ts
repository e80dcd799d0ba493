/** `frontend.tcp`, `frontend.http` and `frontend.networkAuthorization` of a GwPolicy through real sockets. */
import assert from "node:assert/strict";
import { connect as connectHttp2Client } from "node:http2";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { expectEvent } from "../../support/proofs/expect-event.ts";
import { rawClient, type RawClient } from "../../support/gateway/data-plane.ts";
import { documents, startGateway, route, staticBackend, type TestGateway } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { GROUP, gatewayRef, policy, TWO_LISTENERS } from "../../support/proofs/policy-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { keepaliveOptions } from "../../support/servers/socket-options.ts";

interface Served {
  readonly gateway: TestGateway;
  readonly url: string;
  readonly port: number;
}

async function serveWith(context: ProofContext, ...policies: readonly string[]): Promise<Served> {
  const echo = await startEcho(context);
  const rest = [TWO_LISTENERS, staticBackend("web", echo.port), route("web", "web", "/web"), ...policies];
  const gateway = await startGateway(context, documents(...rest));
  assert.deepEqual(gateway.problems(), []);
  const url = gateway.url(8080);
  return { gateway, url: `${url}/web`, port: Number(new URL(url).port) };
}

/** @param says flow YAML of the members of `frontend` */
const serve = (context: ProofContext, says: string): Promise<Served> =>
  serveWith(context, policy("p", { refs: gatewayRef(), says: `frontend: {${says}}` }));

function raw(context: ProofContext, port: number, bytes = ""): RawClient {
  const client = rawClient(port, bytes);
  context.after(() => void client.socket.destroy());
  return client;
}

/** Needs no upstream that speaks HTTP/2. */
const NOWHERE = { ":path": "/" };
const GET = "GET /web HTTP/1.1\r\nhost: a.test\r\n\r\n";
const http = (name: string): string => `GwPolicy spec.frontend.http.${name}`;

/** Lines `x-0: 0`, … */
function lines(count: number): string {
  return Array.from({ length: count }, (_none, at) => `x-${at}: ${at}\r\n`).join("");
}

const keepalive = (name: string): string => `GwPolicy spec.frontend.tcp.keepalive.${name}`;

prove(
  [keepalive("time"), keepalive("interval"), keepalive("retries")],
  "idle connections are probed as the Gateway says",
  async (context) => {
    const { port } = await serve(context, "tcp: {keepalive: {time: 1000s, interval: 70s, retries: 3}}");
    const client = raw(context, port, GET);
    await client.until(/200 OK/);
    const options = await keepaliveOptions(client.socket.localPort ?? 0);
    assert.deepEqual(options, { seconds: 1000, intervalSeconds: 70, probes: 3 });
  },
);

prove([], "without settings they are probed after three minutes, nine times", async (context) => {
  const { port } = await serveWith(context);
  const client = raw(context, port, GET);
  await client.until(/200 OK/);
  const options = await keepaliveOptions(client.socket.localPort ?? 0);
  assert.deepEqual(options, { seconds: 180, intervalSeconds: 180, probes: 9 });
});

prove(http("http1MaxHeaders"), "more header lines than allowed are answered with 431", async (context) => {
  const { port } = await serve(context, "http: {http1MaxHeaders: 4}");
  const within = raw(context, port, `GET /web HTTP/1.1\r\nhost: a.test\r\n${lines(3)}\r\n`);
  await within.until(/^HTTP\/1\.1 200 /);
  const beyond = raw(context, port, `GET /web HTTP/1.1\r\nhost: a.test\r\n${lines(4)}\r\n`);
  await expectEvent(context, beyond.until(/^HTTP\/1\.1 431 /), "an answer with 431");
});

prove(http("http1MaxHeaders"), "more header lines than usual can be allowed", async (context) => {
  const { port } = await serve(context, "http: {http1MaxHeaders: 200}");
  const client = raw(context, port, `GET /web HTTP/1.1\r\nhost: a.test\r\n${lines(150)}\r\n`);
  const [, status] = await client.until(/^HTTP\/1\.1 (\d{3}) /);
  assert.equal(status, "200");
});

prove(http("http1IdleTimeout"), "a connection without a request is closed after the time", async (context) => {
  const { port } = await serve(context, "http: {http1IdleTimeout: 1s}");
  const used = raw(context, port, GET);
  await used.until(/200 OK/);
  const silent = raw(context, port);
  const slow = raw(context, port, "GET /web HTTP/1.1\r\nhost: a");
  await expectEvent(
    context,
    Promise.all([used.closed(), silent.closed(), slow.closed()]),
    "the end of idle connections",
  );
  assert.match(slow.text(), /^HTTP\/1\.1 408 /);
});

prove(
  [http("http2WindowSize"), http("http2FrameSize"), http("http2MaxHeaderSize")],
  "clients are told what they may send at once",
  async (context) => {
    const sizes = "http2WindowSize: 128Ki, http2FrameSize: 32Ki, http2MaxHeaderSize: 2Ki";
    const { url } = await serve(context, `http: {${sizes}}`);
    const session = await connectHttp2(url);
    context.after(() => void session.destroy());
    assert.equal((await sendHttp2(session, NOWHERE)).status, 404);
    const { initialWindowSize, maxFrameSize, maxHeaderListSize } = session.remoteSettings;
    assert.deepEqual([initialWindowSize, maxFrameSize, maxHeaderListSize], [131_072, 32_768, 2_048]);
    await assert.rejects(sendHttp2(session, { ":path": "/", "x-long": "a".repeat(3_000) }));
    // The connection goes on.
    assert.equal((await sendHttp2(session, NOWHERE)).status, 404);
  },
);

prove([], "the largest sizes of the protocol are taken, and what is larger is cut to them", async (context) => {
  const sizes =
    "http2WindowSize: 4Gi, http2ConnectionWindowSize: 4Gi, http2FrameSize: 16777215, http2MaxHeaderSize: 4Gi";
  const { url } = await serve(context, `http: {${sizes}}`);
  const session = await connectHttp2(url);
  context.after(() => void session.destroy());
  assert.equal((await sendHttp2(session, NOWHERE)).status, 404);
  const { initialWindowSize, maxFrameSize, maxHeaderListSize } = session.remoteSettings;
  assert.deepEqual([initialWindowSize, maxFrameSize, maxHeaderListSize], [2_147_483_647, 16_777_215, 4_294_967_295]);
});

prove(http("http2ConnectionWindowSize"), "all streams together have the window that was set", async (context) => {
  const { url } = await serve(context, "http: {http2ConnectionWindowSize: 1Mi}");
  const session = await connectHttp2(url);
  context.after(() => void session.destroy());
  assert.equal((await sendHttp2(session, NOWHERE)).status, 404);
  assert.equal(session.state.remoteWindowSize, 1_048_576);
});

prove(http("http2KeepaliveInterval"), "a connection is pinged, and lives on while it answers", async (context) => {
  const { url } = await serve(context, "http: {http2KeepaliveInterval: 1s, http2KeepaliveTimeout: 1s}");
  const session = await connectHttp2(url);
  context.after(() => void session.destroy());
  const pinged = (): Promise<void> => new Promise((resolve) => session.once("ping", () => resolve()));
  await expectEvent(context, pinged(), "a ping");
  await expectEvent(context, pinged(), "another ping");
  await expectEvent(context, pinged(), "a third ping");
  assert.equal((await sendHttp2(session, NOWHERE)).status, 404);
});

prove(http("http2KeepaliveTimeout"), "a client that does not answer a ping is gone", async (context) => {
  const { port } = await serve(context, "http: {http2KeepaliveInterval: 1s, http2KeepaliveTimeout: 1s}");
  const emptySettings = "\0\0\0\u0004\0\0\0\0\0";
  const client = raw(context, port, `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${emptySettings}`);
  await expectEvent(context, client.closed(), "the end of a client that does not answer");
});

prove(http("maxConnectionDuration"), "an idle connection of HTTP/1 ends after the time", async (context) => {
  const { port } = await serve(context, "http: {maxConnectionDuration: 1s}");
  const client = raw(context, port, GET);
  await client.until(/200 OK/);
  await expectEvent(context, client.closed(), "the end of an idle connection");
});

prove(http("maxConnectionDuration"), "a request under way is answered before the end", async (context) => {
  const { port } = await serve(context, "http: {maxConnectionDuration: 1s}");
  const client = raw(context, port, "POST /web HTTP/1.1\r\nhost: a.test\r\ncontent-length: 4\r\n\r\nab");
  const idle = raw(context, port, GET);
  // Opened later: when it ends, the time of the first is over as well.
  await expectEvent(context, idle.closed(), "the end of an idle connection");
  client.socket.write("cd");
  await expectEvent(context, client.closed(), "the end of the last request");
  assert.match(client.text(), /^HTTP\/1\.1 200 /);
  assert.match(client.text(), /connection: close/i);
});

prove(http("maxConnectionDuration"), "a connection of HTTP/2 is told to go away after the time", async (context) => {
  const { url } = await serve(context, "http: {maxConnectionDuration: 1s}");
  const session = await connectHttp2(url);
  context.after(() => void session.destroy());
  const goneAway = new Promise<number>((resolve) => session.on("goaway", resolve));
  assert.equal(await expectEvent(context, goneAway, "GOAWAY"), 0);
});

prove(http("trustedProxies[]"), "what a trusted proxy says about its client is kept", async (context) => {
  const { url } = await serve(context, "http: {trustedProxies: [127.0.0.0/8]}");
  const headers = {
    "x-forwarded-proto": "https",
    "x-forwarded-host": "public.test",
    forwarded: "for=1.2.3.4",
    "x-forwarded-client-cert": "Hash=1",
  };
  const seen = echoed((await call(url, { headers })).body).headers;
  assert.equal(seen["x-forwarded-proto"], "https");
  assert.equal(seen["x-forwarded-host"], "public.test");
  assert.equal(seen["forwarded"], "for=1.2.3.4");
  assert.equal(seen["x-forwarded-client-cert"], "Hash=1");
  assert.equal(seen["x-forwarded-port"], new URL(url).port);
  const bare = echoed((await call(url, { headers: { "x-forwarded-port": "444" } })).body).headers;
  assert.deepEqual([bare["x-forwarded-proto"], bare["x-forwarded-port"]], ["http", "444"]);
});

prove([], "what anybody else says about its client is replaced", async (context) => {
  const { url } = await serve(context, "http: {trustedProxies: [192.0.2.1, '2001:db8::/32']}");
  const headers = {
    "x-forwarded-proto": "https",
    "x-forwarded-port": "444",
    forwarded: "for=1.2.3.4",
    "x-forwarded-client-cert": "Hash=1",
  };
  const seen = echoed((await call(url, { headers })).body).headers;
  assert.deepEqual([seen["x-forwarded-proto"], seen["forwarded"]], ["http", undefined]);
  assert.equal(seen["x-forwarded-client-cert"], undefined);
  assert.equal(seen["x-forwarded-port"], new URL(url).port);
});

const rule = (action: string, expression: string): string =>
  `networkAuthorization: {action: ${action}, policy: {matchExpressions: ["${expression}"]}}`;
const NETWORK = "GwPolicy spec.frontend.networkAuthorization";

prove(
  [`${NETWORK}.action`, `${NETWORK}.policy.matchExpressions[]`],
  "a connection that is denied is closed without an answer",
  async (context) => {
    const { port } = await serve(context, rule("Deny", "source.address == '127.0.0.1'"));
    const client = raw(context, port, GET);
    assert.equal(await expectEvent(context, client.closed(), "the end of a denied connection"), "");
  },
);

prove([], "a connection is denied when a Deny rule about it fails", async (context) => {
  const { port } = await serve(context, rule("Deny", "source.spiffeId == 'spiffe://a/evil'"));
  assert.equal(await raw(context, port, GET).closed(), "");
  const other = await serve(context, rule("Deny", "has(source.spiffeId) && source.spiffeId == 'spiffe://a/evil'"));
  assert.equal((await call(other.url)).status, 200);
});

prove([], "a connection that an allow rule matches is served, and any other is closed", async (context) => {
  const { url } = await serve(context, rule("Allow", "source.address == '127.0.0.1' && destination.port > 0"));
  assert.equal((await call(url)).status, 200);
  const other = await serve(context, rule("Allow", "source.address == '192.0.2.1'"));
  assert.equal(await raw(context, other.port, GET).closed(), "");
});

const portRef = (port: number): string => `{${GROUP}, kind: Gateway, name: gw, port: ${port}}`;
const limit = (count: number): string => `frontend: {http: {http1MaxHeaders: ${count}}}`;

async function allowed(context: ProofContext, gateway: TestGateway, port: number): Promise<number> {
  const boundPort = Number(new URL(gateway.url(port)).port);
  for (let count = 10; count > 0; count--) {
    const client = raw(context, boundPort, `GET /web HTTP/1.1\r\nhost: a.test\r\n${lines(count - 1)}\r\n`);
    const [, status] = await client.until(/^HTTP\/1\.1 (\d{3}) /);
    if (status === "200") return count;
  }
  return 0;
}

prove(
  "GwPolicy spec.targetRefs[].port",
  "settings for a port win over those for its Gateway, and older ones over newer ones",
  async (context) => {
    const { gateway } = await serveWith(
      context,
      policy("all", { refs: gatewayRef(), says: limit(8), created: "2026-01-01T00:00:00Z" }),
      policy("newer", { refs: gatewayRef(), says: limit(7), created: "2026-01-02T00:00:00Z" }),
      policy("one", { refs: portRef(8081), says: limit(5), created: "2026-01-03T00:00:00Z" }),
    );
    assert.equal(await allowed(context, gateway, 8080), 8);
    assert.equal(await allowed(context, gateway, 8081), 5);
  },
);

prove(
  "GwPolicy spec.targetSelectors[].port",
  "settings for a port of the selected Gateways hold on that port alone",
  async (context) => {
    const selectors = `{${GROUP}, kind: Gateway, matchLabels: {tier: edge}, port: 8081}`;
    const { gateway } = await serveWith(context, policy("one", { selectors, says: limit(5) }));
    assert.ok((await allowed(context, gateway, 8080)) > 5);
    assert.equal(await allowed(context, gateway, 8081), 5);
  },
);

prove([], "network rules of all levels count", async (context) => {
  const { gateway } = await serveWith(
    context,
    policy("all", { refs: gatewayRef(), says: `frontend: {${rule("Allow", "true")}}` }),
    policy("one", { refs: portRef(8081), says: `frontend: {${rule("Deny", "true")}}` }),
  );
  assert.equal((await call(`${gateway.url(8080)}/web`)).status, 200);
  await assert.rejects(call(`${gateway.url(8081)}/web`));
});

prove([], "an idle limit that becomes shorter leaves open connections their own", async (context) => {
  const { gateway, port } = await serve(context, "http: {http1IdleTimeout: 100s}");
  const old = raw(context, port, GET);
  await old.until(/200 OK[^]*\r\n\r\n/);
  const echo = await startEcho(context);
  const rest = [TWO_LISTENERS, staticBackend("web", echo.port), route("web", "web", "/web")];
  const shorter = policy("p", { refs: gatewayRef(), says: "frontend: {http: {http1IdleTimeout: 1s}}" });
  await gateway.change(documents(...rest, shorter));
  const young = raw(context, port, GET);
  await young.closed();
  const before = old.text().length;
  old.socket.write(GET);
  await old.until(new RegExp(`^[^]{${before}}HTTP/1\\.1 200 `));
});

prove([], "a change meets new connections, and those that are open go on", async (context) => {
  const { gateway, port, url } = await serve(context, "http: {http1MaxHeaders: 4}");
  const client = raw(context, port, GET);
  await client.until(/200 OK[^]*\r\n\r\n/);
  const session = connectHttp2Client(url);
  context.after(() => void session.destroy());
  assert.equal((await sendHttp2(session, NOWHERE)).status, 404);
  const echo = await startEcho(context);
  const rest = [TWO_LISTENERS, staticBackend("web", echo.port), route("web", "web", "/web")];
  const changed = policy("p", { refs: gatewayRef(), says: "frontend: {http: {http2FrameSize: 32Ki}}" });
  await gateway.change(documents(...rest, changed));
  const before = client.text().length;
  client.socket.write(`GET /web HTTP/1.1\r\nhost: a.test\r\n${lines(5)}\r\n`);
  await client.until(new RegExp(`^[^]{${before}}HTTP/1\\.1 431 `));
  assert.equal((await sendHttp2(session, NOWHERE)).status, 404);
  assert.equal(session.remoteSettings.maxFrameSize, 16_384);
  await raw(context, port, `GET /web HTTP/1.1\r\nhost: a.test\r\n${lines(5)}\r\n`).until(/^HTTP\/1\.1 200 /);
});
