/** `frontend.connect` of a GwPolicy with mode Tunnel: connections begin with a CONNECT and go on at the Bind of its port. */
import assert from "node:assert/strict";
import { connect as connectTls } from "node:tls";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { rawClient, type RawClient } from "../../support/gateway/data-plane.ts";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  pemObject,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { GROUP, gatewayRef, policy, routeRef } from "../../support/proofs/policy-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";

const FIELD = "GwPolicy spec.frontend.connect.mode";
const AUTHORITY = createAuthority("test", validNow());
const LEAF = createLeaf(AUTHORITY, ["a.test"], validNow());
/** Listeners `http` (8080), `https` (8443) and `tcp` (5432), and a door for tunnels (3128). */
const LISTENERS = `${GATEWAY.trimEnd()}
    - {name: door, port: 3128, protocol: HTTP}
    - {name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
    - {name: tcp, port: 5432, protocol: TCP}
`;
const SECRET = pemObject("Secret", "a", { "tls.crt": LEAF.certificate, "tls.key": LEAF.key });
const portRef = (port: number): string => `{${GROUP}, kind: Gateway, name: gw, port: ${port}}`;
const DOOR = policy("door", { refs: portRef(3128), says: "frontend: {connect: {mode: Tunnel}}" });
const TCP_ROUTE = `
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: tcp}
spec:
  parentRefs: [{name: gw, sectionName: tcp}]
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: web}]}]
`;
/** What the inner connection says about itself, in a header of the answer. */
const TELL = policy("tell", {
  refs: routeRef("web"),
  says: `traffic: {transformation: {response: {set: [{name: x-pass, value: 'source.connectHeaders["x-pass"]'}, {name: x-port, value: string(destination.port)}]}}}`,
});

interface Served {
  readonly gateway: TestGateway;
  /** Of the door. */
  readonly port: number;
}

async function serve(context: ProofContext, ...policies: readonly string[]): Promise<Served> {
  const echo = await startEcho(context);
  const web = route("web", "web").replace(
    "[{name: gw}]",
    "[{name: gw, sectionName: http}, {name: gw, sectionName: https}]",
  );
  const objects = [LISTENERS, SECRET, staticBackend("web", echo.port), web, TCP_ROUTE, TELL, ...policies];
  const gateway = await startGateway(context, documents(...objects));
  assert.deepEqual(gateway.problems(), []);
  return { gateway, port: Number(new URL(gateway.url(3128)).port) };
}

function raw(context: ProofContext, port: number, bytes = ""): RawClient {
  const client = rawClient(port, bytes);
  context.after(() => void client.socket.destroy());
  return client;
}

const ask = (port: number | string, more = "x-pass: open sesame\r\n"): string =>
  `CONNECT a.test:${port} HTTP/1.1\r\nHost: a.test:${port}\r\n${more}\r\n`;
const GET = "GET /path HTTP/1.1\r\nHost: a.test\r\nconnection: close\r\n\r\n";

prove(FIELD, "what comes through a tunnel is a connection to the port that it names", async (context) => {
  const { port } = await serve(context, DOOR);
  const client = raw(context, port, ask(8080) + GET);
  const text = await client.closed();
  assert.match(text, /^HTTP\/1\.1 200 OK\r\nx-request-id: [0-9a-f-]{36}\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  assert.match(text, /\r\nx-pass: open sesame\r\n/);
  assert.match(text, /\r\nx-port: 8080\r\n/);
  assert.match(text, /"url":"\/path"/);
});

prove([], "TLS is spoken inside of the tunnel, and HTTP/2 after it", async (context) => {
  const { port } = await serve(context, DOOR);
  const client = raw(context, port, ask(8443));
  await client.until(/\r\n\r\n$/);
  const options = { socket: client.socket, servername: "a.test", ca: AUTHORITY.certificate };
  const secure = connectTls({ ...options, ALPNProtocols: ["http/1.1"] });
  context.after(() => void secure.destroy());
  secure.write(GET);
  let text = "";
  for await (const chunk of secure.setEncoding("utf8")) text += chunk as string;
  assert.match(text, /^HTTP\/1\.1 200 [^]*\r\nx-pass: open sesame\r\n[^]*x-forwarded-proto":"https"/);
});

prove([], "a port of bytes is reached as well", async (context) => {
  const { port } = await serve(context, DOOR);
  assert.match(await raw(context, port, ask(5432) + GET).closed(), /\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
});

prove([], "a CONNECT that comes byte by byte is read all the same", async (context) => {
  const { port } = await serve(context, DOOR);
  const client = raw(context, port);
  for (const byte of ask(8080)) await new Promise((resolve) => client.socket.write(byte, resolve));
  await client.until(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/);
  client.socket.write(GET);
  assert.match(await client.closed(), /\r\nx-pass: open sesame\r\n/);
});

prove([], "what is no CONNECT to a port of the Gateway is refused, and other ports are as ever", async (context) => {
  const { gateway, port } = await serve(context, DOOR);
  const refused: readonly (readonly [string, RegExp])[] = [
    [GET, /^HTTP\/1\.1 405 [^]*x-request-id: [^]*method not allowed$/],
    [ask(9999), /^HTTP\/1\.1 404 [^]*bind not found$/],
    [ask(""), /^HTTP\/1\.1 400 [^]*invalid request$/],
    [ask(8080).replace("HTTP/1.1", "HTTP/1.0"), /^HTTP\/1\.1 400 /],
    [ask(8080, "content-length: 5\r\n"), /^HTTP\/1\.1 400 /],
    [ask(8080, "transfer-encoding: chunked\r\n"), /^HTTP\/1\.1 400 /],
    [ask(8080, "host: b.test:8080\r\n"), /^HTTP\/1\.1 400 /],
    [ask(8080, "a: b\r\n folded: c\r\n"), /^HTTP\/1\.1 400 /],
    [ask(8080, "a: b\nc: d\r\n"), /^HTTP\/1\.1 400 /],
    ["\u0016\u0003\u0001\u0002\u0000", /^HTTP\/1\.1 400 /],
    [ask(8080, "a: b\r\n".repeat(100)), /^HTTP\/1\.1 431 /],
    [`CONNECT a.test:8080 HTTP/1.1\r\nhost: a\r\na: ${"b".repeat(70_000)}`, /^HTTP\/1\.1 431 /],
  ];
  for (const [bytes, answer] of refused) {
    const client = raw(context, port, bytes);
    client.socket.end();
    assert.match(await client.closed(), answer, bytes.slice(0, 200));
  }
  assert.equal((await call(gateway.url(8080))).status, 200);
  // The door is one for tunnels alone, and there are none in tunnels.
  assert.match(await raw(context, port, ask(3128) + ask(8080)).closed(), /\r\n\r\nHTTP\/1\.1 405 /);
});

prove([], "the rules of a Bind see the headers of the tunnel, and those of the door guard it", async (context) => {
  const rule = `networkAuthorization: {action: Allow, policy: {matchExpressions: ['source.connectHeaders["x-pass"] == "open sesame"']}}`;
  const inner = await serve(context, DOOR, policy("net", { refs: portRef(8080), says: `frontend: {${rule}}` }));
  assert.match(await raw(context, inner.port, ask(8080) + GET).closed(), /\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  assert.doesNotMatch(await raw(context, inner.port, ask(8080, "") + GET).closed(), /\r\n\r\nHTTP/);
  // Nobody comes straight to the port.
  await assert.rejects(call(inner.gateway.url(8080)));
  const both = policy("door", { refs: portRef(3128), says: `frontend: {connect: {mode: Tunnel}, ${rule}}` });
  const outer = await serve(context, both);
  assert.match(await raw(context, outer.port, ask(8080) + GET).closed(), /\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  assert.equal(await raw(context, outer.port, ask(8080, "") + GET).closed(), "");
});

prove(
  [],
  "a whole Gateway of tunnels leads each to its port, and a PROXY header has no place in front",
  async (context) => {
    const all = policy("all", { refs: gatewayRef(), says: "frontend: {connect: {mode: Tunnel}, proxyProtocol: {}}" });
    const { gateway, port } = await serve(context, all);
    assert.match(await raw(context, port, ask(8080) + GET).closed(), /\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    const own = Number(new URL(gateway.url(8080)).port);
    assert.match(await raw(context, own, ask(8080) + GET).closed(), /\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    assert.equal((await call(gateway.url(8080))).status, 405);
  },
);
