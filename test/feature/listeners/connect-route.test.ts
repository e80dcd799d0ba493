/** `frontend.connect` of a GwPolicy with mode Route: CONNECT is matched like any request and opens a tunnel to the backend. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
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
import { answerOf, connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { gatewayRef, policy, routeRef } from "../../support/proofs/policy-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";

const FIELD = "GwPolicy spec.frontend.connect.mode";
const ROUTE = policy("connect", { refs: gatewayRef(), says: "frontend: {connect: {mode: Route}}" });
const CONNECT = "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n";

/** Repeats what it hears in upper case, and says goodbye when the client has ended. */
async function startShouter(
  context: Pick<ProofContext, "after">,
  pair?: { readonly certificate: string; readonly key: string },
): Promise<number> {
  const serve = (socket: Socket): void => {
    context.after(() => void socket.destroy());
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => void socket.write(chunk.toString().toUpperCase()));
    socket.on("end", () => socket.end("BYE"));
  };
  const options = { allowHalfOpen: true };
  const server =
    pair === undefined
      ? createServer(options, serve)
      : createTlsServer({ ...options, cert: pair.certificate, key: pair.key }, serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function serve(
  context: ProofContext,
  ...objects: readonly string[]
): Promise<{ gateway: TestGateway; port: number }> {
  const gateway = await startGateway(context, documents(GATEWAY, ...objects));
  assert.deepEqual(gateway.problems(), []);
  return { gateway, port: Number(new URL(gateway.url()).port) };
}

function raw(context: ProofContext, port: number, bytes: string): RawClient {
  const client = rawClient(port, bytes);
  context.after(() => void client.socket.destroy());
  return client;
}

const traffic = (says: string): string => policy("own", { refs: routeRef("web"), says: `traffic: {${says}}` });

prove(FIELD, "CONNECT opens a tunnel to the backend of its route, whose policies run", async (context) => {
  const shouter = await startShouter(context);
  const marked = traffic("headerModifiers: {response: {set: [{name: x-mark, value: passed}]}}");
  const { port } = await serve(context, staticBackend("web", shouter), route("web", "web"), ROUTE, marked);
  const client = raw(context, port, `${CONNECT}early `);
  const [head] = await client.until(/^[^]*?\r\n\r\n/);
  assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(head, /\r\nx-mark: passed\r\n/);
  assert.match(head, /\r\nx-request-id: /);
  assert.doesNotMatch(head, /content-length|transfer-encoding/i);
  await client.until(/\r\n\r\nEARLY $/);
  client.socket.write("hello ");
  await client.until(/HELLO $/);
  client.socket.end();
  assert.match(await client.closed(), /\r\n\r\nEARLY HELLO BYE$/);
});

prove(FIELD, "where it is denied, and where nothing is said, CONNECT is refused with 405", async (context) => {
  const echo = await startEcho(context);
  const objects = [staticBackend("web", echo.port), route("web", "web")];
  const open = await serve(context, ...objects, ROUTE);
  const [, status] = await raw(context, open.port, CONNECT).until(/^HTTP\/1\.1 (\d{3}) /);
  assert.equal(status, "200");
  const denies = policy("connect", { refs: gatewayRef(), says: "frontend: {connect: {mode: Deny}}" });
  for (const policies of [[denies], []]) {
    const { gateway, port } = await serve(context, ...objects, ...policies);
    const text = await raw(context, port, CONNECT).closed();
    assert.match(text, /^HTTP\/1\.1 405 [^]*\r\nx-request-id: [^]*\r\n\r\nmethod not allowed$/);
    const session = await connectHttp2(gateway.url());
    context.after(() => void session.destroy());
    const refused = session.request({ ":method": "CONNECT", ":authority": "a.test:443" });
    assert.equal((await answerOf(refused)).status, 405);
  }
});

prove([], "what policies refuse is answered in HTTP, and a tunnel is no answer of theirs", async (context) => {
  const shouter = await startShouter(context);
  const objects = [staticBackend("web", shouter), route("web", "web"), ROUTE];
  const rule = `request.method == "CONNECT" && request.path == "/" && request.host == "a.test:443"`;
  const denied = await serve(
    context,
    ...objects,
    traffic(`authorization: {action: Deny, policy: {matchExpressions: ['${rule}']}}`),
  );
  assert.match(await raw(context, denied.port, CONNECT).closed(), /^HTTP\/1\.1 403 [^]*authorization failed$/);
  const direct = await serve(context, ...objects, traffic("directResponse: {status: 200, body: hello}"));
  // A success would be a tunnel.
  assert.match(await raw(context, direct.port, CONNECT).closed(), /^HTTP\/1\.1 502 /);
  const changed = await serve(
    context,
    ...objects,
    traffic(`transformation: {response: {set: [{name: ":status", value: '"418"'}]}}`),
  );
  assert.match(await raw(context, changed.port, CONNECT).closed(), /^HTTP\/1\.1 418 /);
});

prove([], "a target without a port, a body, and a route of another method are refused", async (context) => {
  const shouter = await startShouter(context);
  const get = route("web", "web").replace("value: /}", "value: /}, method: GET");
  const { port } = await serve(context, staticBackend("web", shouter), get, ROUTE);
  for (const target of ["a.test", "a.test:", "a.test:0", "a.test:70000", "/", "http://a.test:80/"])
    assert.match(
      await raw(context, port, `CONNECT ${target} HTTP/1.1\r\nHost: a\r\n\r\n`).closed(),
      /^HTTP\/1\.1 400 /,
    );
  const body = CONNECT.replace("\r\n\r\n", "\r\ncontent-length: 2\r\n\r\nhi");
  assert.match(await raw(context, port, body).closed(), /^HTTP\/1\.1 400 /);
  assert.match(await raw(context, port, CONNECT).closed(), /^HTTP\/1\.1 404 [^]*route not found$/);
});

prove([], "a backend that cannot be reached is 503, and one of models no target at all", async (context) => {
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
  const { port: closed } = free.address() as AddressInfo;
  await new Promise((resolve) => free.close(resolve));
  const { port } = await serve(context, staticBackend("web", closed), route("web", "web"), ROUTE);
  assert.match(await raw(context, port, CONNECT).closed(), /^HTTP\/1\.1 503 /);
  const ai = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec: {ai: {provider: {llma: {}, host: 127.0.0.1, port: ${closed}}}}
`;
  const models = await serve(context, ai, route("web", "ai"), ROUTE);
  assert.match(await raw(context, models.port, CONNECT).closed(), /^HTTP\/1\.1 500 [^]*invalid backend type$/);
});

prove([], "TLS of the backend is spoken for the client", async (context) => {
  const authority = createAuthority("test", validNow());
  const shouter = await startShouter(context, createLeaf(authority, ["up.test"], validNow()));
  const secure = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec:
  static: {host: 127.0.0.1, port: ${shouter}}
  policies: {tls: {sni: up.test, caCertificateRefs: [{name: ca}]}}
`;
  const ca = pemObject("ConfigMap", "ca", { "ca.crt": authority.certificate });
  const { port } = await serve(context, secure, ca, route("web", "web"), ROUTE);
  const client = raw(context, port, CONNECT);
  await client.until(/^HTTP\/1\.1 200 [^]*\r\n\r\n/);
  client.socket.end("hello ");
  assert.match(await client.closed(), /\r\n\r\nHELLO BYE$/);
});

prove([], "over HTTP/2 each stream is a tunnel of its own, beside requests", async (context) => {
  const shouter = await startShouter(context);
  const echo = await startEcho(context);
  const { gateway } = await serve(
    context,
    staticBackend("web", shouter),
    route("web", "web").replace(
      "kind: HTTPRoute\nmetadata: {name: web}\nspec:",
      "kind: HTTPRoute\nmetadata: {name: web}\nspec:\n  hostnames: [a.test]",
    ),
    staticBackend("echo", echo.port),
    route("echo", "echo"),
    ROUTE,
  );
  const session = await connectHttp2(gateway.url());
  context.after(() => void session.destroy());
  const open = async (): Promise<ReturnType<typeof session.request>> => {
    const stream = session.request({ ":method": "CONNECT", ":authority": "a.test:443" }, { endStream: false });
    const [headers] = (await once(stream, "response")) as [Record<string, string>];
    assert.equal(headers[":status"], 200);
    return stream;
  };
  const [one, two] = [await open(), await open()];
  one.write("first");
  two.write("second");
  assert.equal(String((await once(two, "data"))[0]), "SECOND");
  assert.equal(String((await once(one, "data"))[0]), "FIRST");
  one.end();
  assert.equal(String((await once(one, "data"))[0]), "BYE");
  two.close();
  assert.equal((await sendHttp2(session, { ":path": "/", ":authority": "b.test" })).status, 200);
  assert.equal((await answerOf(session.request({ ":method": "CONNECT", ":authority": "a.test" }))).status, 400);
  assert.equal((await call(gateway.url())).status, 200);
});
