/** HTTPS listeners through real sockets: which certificate is shown, whose certificates are taken, and what is refused. */
import assert from "node:assert/strict";
import { request } from "node:https";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { test, type TestContext } from "node:test";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  gatewayOf,
  pemObject,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { createSelfSigned, validNow } from "../../support/servers/tls-upstream.ts";

/** How a client words that its connection ended before or instead of an answer. */
const REFUSED = /alert|ECONNRESET|socket hang up|disconnected before/;
const AUTHORITY = createAuthority("test", validNow());

function secret(name: string, ...hosts: readonly string[]): string {
  const { certificate, key } = createLeaf(AUTHORITY, hosts, validNow());
  return pemObject("Secret", name, { "tls.crt": certificate, "tls.key": key });
}

const https = (name: string, hostname: string, certificate: string) =>
  `{name: ${name}, port: 8443, protocol: HTTPS, ${hostname === "" ? "" : `hostname: "${hostname}", `}tls: {certificateRefs: [{name: ${certificate}}]}}`;

const LISTENERS = [https("a", "a.test", "a"), https("wild", "*.b.test", "b")];

async function serve(t: TestContext, manifests: readonly string[]): Promise<{ gateway: TestGateway; port: number }> {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const rest = [staticBackend("web", echo.port), route("web", "web")];
  const started = await startGateway(context, documents(...manifests, ...rest));
  return { gateway: started, port: Number(new URL(started.url(8443)).port) };
}

interface Asked extends ConnectionOptions {
  /** For the Host header; by default the server name. */
  readonly host?: string;
}

/** One request on a connection of its own. */
function ask(
  port: number,
  servername: string,
  { host, ...tls }: Asked = {},
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = { host: host ?? servername };
    const outgoing = request(
      { host: "127.0.0.1", port, servername, headers, agent: false, ca: AUTHORITY.certificate, ...tls },
      (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}

test("the server name chooses the certificate, and the upstream learns that the client came by https", async (t) => {
  const { port } = await serve(t, [gatewayOf(LISTENERS), secret("a", "a.test"), secret("b", "*.b.test")]);
  // The client verifies the name, so an answer proves the certificate.
  const answer = await ask(port, "a.test");
  assert.equal(echoed(answer.body).headers["x-forwarded-proto"], "https");
  assert.equal((await ask(port, "x.b.test")).status, 200);
});

test("a name that no listener has is refused with an alert that says so", async (t) => {
  const { port } = await serve(t, [gatewayOf(LISTENERS), secret("a", "a.test")]);
  await assert.rejects(ask(port, "other.test"), /unrecognized name/);
  await assert.rejects(ask(port, ""), /unrecognized name/);
  // A listener whose certificate is missing has the name all the same.
  await assert.rejects(ask(port, "x.b.test"), /handshake failure/);
});

test("a request for a host of another listener is misdirected, and one for no listener is not found", async (t) => {
  const { port } = await serve(t, [gatewayOf(LISTENERS), secret("a", "a.test"), secret("b", "*.b.test")]);
  assert.equal((await ask(port, "a.test", { host: "x.b.test" })).status, 421);
  assert.equal((await ask(port, "x.b.test", { host: "y.b.test" })).status, 200);
  assert.equal((await ask(port, "a.test", { host: "other.test" })).status, 404);
});

test("plain text on a TLS port is refused, and without a server name only a listener for all hosts answers", async (t) => {
  const any = [gatewayOf([...LISTENERS, https("any", "", "any")]), secret("a", "a.test"), secret("b", "*.b.test")];
  const { port } = await serve(t, [...any, secret("any", "127.0.0.1")]);
  await assert.rejects(call(`http://127.0.0.1:${port}/`), REFUSED);
  assert.equal((await ask(port, "", { host: "any.test" })).status, 200);
  const named = await serve(t, [gatewayOf(LISTENERS), secret("a", "a.test"), secret("b", "*.b.test")]);
  await assert.rejects(ask(named.port, "", { host: "a.test" }), REFUSED);
});

test("a listener without its Secret fails handshakes until the Secret is there, and never speaks plain text", async (t) => {
  const echo = await startEcho(contextOf(t));
  const context = contextOf(t);
  const rest = [gatewayOf(LISTENERS), secret("b", "*.b.test"), staticBackend("web", echo.port), route("web", "web")];
  const started = await startGateway(context, documents(...rest));
  const port = Number(new URL(started.url(8443)).port);
  await assert.rejects(ask(port, "a.test"), REFUSED);
  await assert.rejects(call(`http://127.0.0.1:${port}/`), REFUSED);
  assert.equal((await ask(port, "x.b.test")).status, 200);
  await started.change(documents(...rest, secret("a", "a.test")));
  assert.equal((await ask(port, "a.test")).status, 200);
});

test("a renewed certificate is shown to new connections, and those that are open go on", async (t) => {
  const rest = [gatewayOf(LISTENERS), secret("b", "*.b.test")];
  const { gateway: started, port } = await serve(t, [...rest, secret("a", "a.test")]);
  const open = await secured(t, port, "a.test");
  const before = open.getPeerCertificate().fingerprint256;
  const echo = await startEcho(contextOf(t));
  const renewed = [...rest, secret("a", "a.test"), staticBackend("web", echo.port), route("web", "web")];
  await started.change(documents(...renewed));
  const after = (await secured(t, port, "a.test")).getPeerCertificate().fingerprint256;
  assert.notEqual(after, before);
  open.write("GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n");
  let text = "";
  for await (const chunk of open.setEncoding("utf8")) text += chunk as string;
  assert.match(text, /^HTTP\/1\.1 200 /);
});

test("clients have to show a certificate that is trusted, unless the fallback lets them in without", async (t) => {
  const known = createSelfSigned("known");
  const unknown = createSelfSigned("unknown");
  const clients = pemObject("ConfigMap", "clients", { "ca.crt": known.certificate });
  const refs = `caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]`;
  const start = (validation: string) =>
    serve(t, [
      gatewayOf(LISTENERS, `  tls: {frontend: {default: {validation: {${validation}}}}}`),
      secret("a", "a.test"),
      secret("b", "*.b.test"),
      clients,
    ]);
  const strict = await start(refs);
  const shown = ({ certificate: cert, key }: typeof known): Asked => ({ cert, key });
  assert.equal((await ask(strict.port, "a.test", shown(known))).status, 200);
  await assert.rejects(ask(strict.port, "a.test"), REFUSED);
  await assert.rejects(ask(strict.port, "a.test", shown(unknown)), REFUSED);
  const lenient = await start(`mode: AllowInsecureFallback, ${refs}`);
  assert.equal((await ask(lenient.port, "a.test", shown(known))).status, 200);
  assert.equal((await ask(lenient.port, "a.test")).status, 200);
  assert.equal((await ask(lenient.port, "a.test", shown(unknown))).status, 200);
});

function secured(t: TestContext, port: number, servername: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, servername, ca: AUTHORITY.certificate });
    t.after(() => void socket.destroy());
    socket.once("secureConnect", () => resolve(socket));
    socket.once("error", reject);
  });
}

test("HTTP/2 is spoken where the handshake agreed on it, and a stream for another listener is misdirected", async (t) => {
  const { port } = await serve(t, [gatewayOf(LISTENERS), secret("a", "a.test"), secret("b", "*.b.test")]);
  const options = { ca: AUTHORITY.certificate, servername: "a.test" };
  const session = await connectHttp2(`https://127.0.0.1:${port}`, options);
  t.after(() => void session.destroy());
  const { status, body } = await sendHttp2(session, { ":path": "/here", ":authority": "a.test" });
  const seen = echoed(body.toString());
  assert.deepEqual([status, seen.url, seen.headers["x-forwarded-proto"]], [200, "/here", "https"]);
  assert.equal((await sendHttp2(session, { ":path": "/", ":authority": "x.b.test" })).status, 421);
});
