/** dynamicForwardProxy through real sockets: requests go where they say, connections where their server name says. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { request } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { createSelfSigned, startTlsUpstream } from "../../support/servers/tls-upstream.ts";
import { rawClient } from "../../support/gateway/data-plane.ts";
import { startDnsServer, useDnsServer } from "../../support/servers/dns-server.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { startForwardProxy } from "../../support/servers/forward-proxy.ts";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  pemObject,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";

function anywhere(policies = ""): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: any}
spec: {dynamicForwardProxy: {}${policies === "" ? "" : `, policies: {${policies}}`}}
`;
}

function serve(context: ProofContext, ...more: readonly string[]): Promise<TestGateway> {
  return startGateway(context, documents(GATEWAY, route("any", "any"), ...more));
}

const askFor = (gateway: TestGateway, host: string, path = "/") => call(gateway.url() + path, { headers: { host } });

prove(
  "GwBackend spec.dynamicForwardProxy",
  "a request goes to its authority, which stays its Host in lower case",
  async (context) => {
    const [one, two] = [await startEcho(context, { tag: "one" }), await startEcho(context, { tag: "two" })];
    const names = await startDnsServer(context);
    useDnsServer(context, names);
    names.zone.set("two.test", { addresses: ["127.0.0.1"], ttl: 60 });
    const gateway = await serve(context, anywhere());
    assert.equal((await askFor(gateway, `127.0.0.1:${one.port}`)).headers["x-upstream"], "one");
    const answer = await askFor(gateway, `Two.test:${two.port}`, "/path");
    assert.equal(answer.headers["x-upstream"], "two");
    assert.deepEqual([echoed(answer.body).url, echoed(answer.body).headers["host"]], ["/path", `two.test:${two.port}`]);
  },
);

prove([], "without a port it is 80, and 443 where the request says https", async (context) => {
  const proxy = await startForwardProxy(context);
  const url = `tunnel: {url: "http://127.0.0.1:${proxy.port}", mode: Connect}`;
  const secure = `
  traffic: {transformation: {request: {set: [{name: ":scheme", value: "'https'"}]}}}`;
  const more = documents(route("secure", "any", "/secure"), routePolicy("secure", "secure", secure));
  const gateway = await serve(context, anywhere(url), more);
  proxy.refusal = "HTTP/1.1 503 not now\r\n\r\n";
  await askFor(gateway, "far.test");
  await askFor(gateway, "[::1]");
  await askFor(gateway, "far.test", "/secure");
  assert.deepEqual(proxy.asked, ["CONNECT far.test:80", "CONNECT [::1]:80", "CONNECT far.test:443"]);
});

prove([], "what a transformation makes of :authority is where the request goes", async (context) => {
  const { port } = await startEcho(context, { tag: "elsewhere" });
  const there = `
  traffic: {transformation: {request: {set: [{name: ":authority", value: "'127.0.0.1:${port}'"}]}}}`;
  const gateway = await serve(context, anywhere(), routePolicy("there", "any", there));
  assert.equal((await askFor(gateway, "first.test")).headers["x-upstream"], "elsewhere");
});

prove([], "a request without a usable authority is refused with 400", async (context) => {
  const gateway = await serve(context, anywhere());
  for (const host of ["127.0.0.1:0", "127.0.0.1:65536", "[::1"]) {
    assert.equal((await askFor(gateway, host)).status, 400, host);
  }
  const client = rawClient(Number(new URL(gateway.url()).port), "GET / HTTP/1.0\r\n\r\n");
  context.after(() => void client.socket.destroy());
  await client.until(/^HTTP\/1\.[01] 400 /);
});

prove([], "over TLS the authority is the name that is sent and checked", async (context) => {
  const upstream = await startTlsUpstream(context, ["secure.test"]);
  const names = await startDnsServer(context);
  useDnsServer(context, names);
  for (const name of ["secure.test", "other.test"]) names.zone.set(name, { addresses: ["127.0.0.1"], ttl: 60 });
  const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": upstream.authority });
  const gateway = await serve(context, anywhere("tls: {caCertificateRefs: [{name: trusted}]}"), trusted);
  assert.equal((await askFor(gateway, `secure.test:${upstream.port}`)).status, 200);
  assert.equal((await askFor(gateway, `other.test:${upstream.port}`)).status, 503);
});

prove([], "a route with CONNECT opens a tunnel to wherever is asked", async (context) => {
  const { port } = await startEcho(context, { tag: "inside" });
  const gateway = await serve(context, anywhere(), gatewayPolicy("connect", "  frontend: {connect: {mode: Route}}"));
  const head = `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`;
  const client = rawClient(Number(new URL(gateway.url()).port), head);
  context.after(() => void client.socket.destroy());
  await client.until(/^HTTP\/1\.1 200 /);
  client.socket.write("GET / HTTP/1.1\r\nhost: a.test\r\n\r\n");
  await client.until(/x-upstream: inside/i);
});

test("a TLS connection goes to its server name and the port of the listener; without a name it is closed", async (t) => {
  const context = contextOf(t);
  const own = createSelfSigned("far", "DNS:far.test");
  const upstream = await startTlsUpstream(context, [], { cert: own.certificate, key: own.key });
  const names = await startDnsServer(context);
  useDnsServer(context, names);
  names.zone.set("far.test", { addresses: ["127.0.0.1"], ttl: 60 });
  const listener = `{name: pass, port: ${upstream.port}, protocol: TLS, tls: {mode: Passthrough}}`;
  const tlsRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: any}
spec:
  parentRefs: [{name: gw}]
  hostnames: ["*.test"]
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: any}]}]
`;
  const front = GATEWAY.replace(/\{name: http.*\}/, listener);
  const gateway = await startGateway(context, documents(front, anywhere(), tlsRoute));
  const port = Number(new URL(gateway.url(upstream.port)).port);
  const ask = (servername: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, servername, ca: own.certificate, agent: false };
      const outgoing = request(options, (response) => (response.resume(), resolve(response.statusCode)));
      outgoing.on("error", reject);
      outgoing.end();
    });
  assert.equal(await ask("far.test"), 200);
  await assert.rejects(ask(""));
});

test("a backend replaced by another kind is followed by the next request, and its connections end", async (t) => {
  const context = contextOf(t);
  const asked = await startEcho(context, { tag: "asked" });
  const sockets: Socket[] = [];
  const held = Promise.withResolvers<ServerResponse>();
  const fixed = createServer((request, response) => {
    if (request.url === "/held") held.resolve(response);
    else response.end("fixed");
  });
  fixed.on("connection", (socket) => void sockets.push(socket));
  await new Promise<void>((resolve) => fixed.listen(0, "127.0.0.1", resolve));
  context.after(() => void (fixed.closeAllConnections(), fixed.close()));
  const { port } = fixed.address() as AddressInfo; // a TCP server's address is one
  const objects = (backend: string): string => documents(GATEWAY, route("any", "any"), backend);
  const gateway = await startGateway(context, objects(staticBackend("any", port)));
  const host = `127.0.0.1:${asked.port}`;
  const inFlight = askFor(gateway, host, "/held");
  const response = await held.promise;
  assert.equal((await askFor(gateway, host)).body, "fixed");
  assert.equal(sockets.length, 2);
  await gateway.change(objects(anywhere()));
  assert.equal((await askFor(gateway, host)).headers["x-upstream"], "asked");
  const closed = sockets.map((socket) => (socket.destroyed ? undefined : once(socket, "close")));
  await closed[1];
  assert.equal(sockets[0]?.destroyed, false, "a request is under way on it");
  response.end("late");
  assert.equal((await inFlight).body, "late");
  await closed[0];
  await gateway.change(objects(staticBackend("any", port)));
  assert.equal((await askFor(gateway, host)).body, "fixed");
});
