/** `frontend.tls` of a GwPolicy and the TLS options of listeners: what handshakes agree on, and which ones fail. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectPlain } from "node:net";
import { Duplex } from "node:stream";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import type { Clock } from "../../../src/lib/time/clock.ts";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  gatewayOf,
  pemObject,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { expectEvent } from "../../support/proofs/expect-event.ts";
import { gatewayRef, policy } from "../../support/proofs/policy-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { testClock } from "../../support/gateway/test-clock.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";

const AUTHORITY = createAuthority("test", validNow());
const LEAF = createLeaf(AUTHORITY, ["a.test"], validNow());
const SECRET = pemObject("Secret", "a", { "tls.crt": LEAF.certificate, "tls.key": LEAF.key });

function listenerOf(name: string, members: string, options = ""): string {
  const more = options === "" ? "" : `, options: {${options}}`;
  return `{name: ${name}, port: 8443, protocol: HTTPS${members}, tls: {certificateRefs: [{name: a}]${more}}}`;
}

const gatewayWith = (options = ""): string => gatewayOf([listenerOf("https", "", options)]);

interface Served {
  readonly gateway: TestGateway;
  readonly port: number;
}

/** @param tls flow YAML of `frontend.tls` */
async function serve(
  context: ProofContext,
  tls: string,
  options = "",
  settings: { readonly clock?: Clock } = {},
): Promise<Served> {
  const echo = await startEcho(context);
  const said = tls === "" ? [] : [policy("p", { refs: gatewayRef(), says: `frontend: {tls: {${tls}}}` })];
  const rest = [gatewayWith(options), SECRET, staticBackend("web", echo.port), route("web", "web"), ...said];
  const gateway = await startGateway(context, documents(...rest), settings);
  assert.deepEqual(gateway.problems(), []);
  return { gateway, port: Number(new URL(gateway.url(8443)).port) };
}

interface Agreed {
  readonly version: string | null;
  readonly cipher: string;
  readonly alpn: string | false | null;
  readonly group: string;
}

/** @throws what ended the handshake */
function shake(port: number, options: ConnectionOptions = {}): Promise<Agreed> {
  return new Promise((resolve, reject) => {
    const socket: TLSSocket = connect(
      { host: "127.0.0.1", port, servername: "a.test", ca: AUTHORITY.certificate, ...options },
      () => {
        const key = socket.getEphemeralKeyInfo();
        const group = key !== null && "name" in key ? String(key.name) : "";
        resolve({
          version: socket.getProtocol(),
          cipher: socket.getCipher().standardName,
          alpn: socket.alpnProtocol,
          group,
        });
        socket.destroy();
      },
    );
    socket.on("error", reject);
  });
}

const field = (name: string): string => `GwPolicy spec.frontend.tls.${name}`;
const REFUSED = /alert|ECONNRESET|disconnected before|no ciphers|unsupported protocol/i;

prove(field("minProtocolVersion"), "a client that speaks only older versions is refused", async (context) => {
  const { port } = await serve(context, "minProtocolVersion: '1.3'");
  assert.equal((await shake(port)).version, "TLSv1.3");
  await assert.rejects(shake(port, { maxVersion: "TLSv1.2" }), REFUSED);
});

prove(field("maxProtocolVersion"), "no newer version is agreed on", async (context) => {
  const { port } = await serve(context, "maxProtocolVersion: '1.2'");
  assert.equal((await shake(port)).version, "TLSv1.2");
});

prove(field("cipherSuites[]"), "only the listed suites are agreed on, the first one first", async (context) => {
  const listed = ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"];
  const suites = [...listed, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"];
  const { port } = await serve(context, `cipherSuites: [${suites.join(", ")}]`);
  const agreed = await shake(port);
  // Without a suite of TLS 1.3 that version is not spoken.
  assert.equal(agreed.version, "TLSv1.2");
  assert.match(agreed.cipher, /CHACHA20_POLY1305/);
  assert.match((await shake(port, { ciphers: "ECDHE+AES128+AESGCM" })).cipher, /AES_128_GCM/);
  await assert.rejects(shake(port, { ciphers: "ECDHE+AES256+AESGCM" }), REFUSED);
});

prove(field("cipherSuites[]"), "suites of TLS 1.3 alone leave that version alone", async (context) => {
  const { port } = await serve(context, "cipherSuites: [TLS13_CHACHA20_POLY1305_SHA256]");
  const agreed = await shake(port);
  assert.deepEqual([agreed.version, agreed.cipher], ["TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256"]);
  await assert.rejects(shake(port, { maxVersion: "TLSv1.2" }), REFUSED);
});

prove(field("keyExchangeGroups[]"), "only the listed groups are agreed on", async (context) => {
  const { port } = await serve(context, "keyExchangeGroups: [P-384, X25519_MLKEM768]");
  const { group } = await shake(port, { ecdhCurve: "P-384:X25519" }).catch(() => ({ group: "none" }));
  assert.match(group, /384/);
  await shake(port, { ecdhCurve: "X25519MLKEM768" });
  await assert.rejects(shake(port, { ecdhCurve: "X25519" }), REFUSED);
});

prove(field("alpnProtocols[]"), "only the listed protocols are agreed on", async (context) => {
  const { port } = await serve(context, "alpnProtocols: ['http/1.1']");
  assert.equal((await shake(port, { ALPNProtocols: ["h2", "http/1.1"] })).alpn, "http/1.1");
  await assert.rejects(shake(port, { ALPNProtocols: ["h2"] }), REFUSED);
});

prove(field("handshakeTimeout"), "a client that does not begin its handshake is cut off in time", async (context) => {
  const { port } = await serve(context, "handshakeTimeout: 200ms");
  const socket = connectPlain(port, "127.0.0.1");
  context.after(() => void socket.destroy());
  const startedMs = performance.now();
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  await expectEvent(context, closed, "the end of the connection");
  assert.ok(performance.now() - startedMs >= 150);
});

prove([], "the limit is one for the whole handshake, and ends with it", async (context) => {
  const clock = testClock();
  const { port } = await serve(context, "handshakeTimeout: 60s", "", { clock });
  const late = connectPlain(port, "127.0.0.1");
  context.after(() => void late.destroy());
  const hello = await clientHello();
  late.write(hello.subarray(0, 100));
  const open = connect({ host: "127.0.0.1", port, servername: "a.test", ca: AUTHORITY.certificate });
  context.after(() => void open.destroy());
  await once(open, "secureConnect");
  await clock.advance(59_999);
  late.write(hello.subarray(100));
  // The first half of the handshake is done.
  await once(late, "data");
  const closed = once(late, "close");
  await clock.advance(1);
  await closed;
  await clock.advance(120_000);
  open.write("GET / HTTP/1.1\r\nhost: a.test\r\n\r\n");
  assert.match(String(await once(open, "data")), /^HTTP\/1\.1 200/);
});

/** What a client says first. */
async function clientHello(): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const wire = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, done) {
      resolve(chunk);
      done();
    },
  });
  connect({ socket: wire, servername: "a.test" }).on("error", () => undefined);
  const hello = await promise;
  wire.destroy();
  return hello;
}

prove([], "the options of a listener win over the policy", async (context) => {
  const options = `gwproxy.dev/max-protocol-version: '1.3', gwproxy.dev/cipher-suites: 'TLS13_AES_128_GCM_SHA256'`;
  const { port } = await serve(context, "maxProtocolVersion: '1.2', cipherSuites: [TLS13_AES_256_GCM_SHA384]", options);
  const agreed = await shake(port);
  assert.deepEqual([agreed.version, agreed.cipher], ["TLSv1.3", "TLS_AES_128_GCM_SHA256"]);
});

prove([], "each listener of a port has its own options, chosen by the server name", async (context) => {
  const echo = await startEcho(context);
  const both = gatewayOf([
    listenerOf("a", ", hostname: a.test"),
    listenerOf("b", ", hostname: b.test", "gwproxy.dev/max-protocol-version: '1.2'"),
  ]);
  const gateway = await startGateway(
    context,
    documents(both, SECRET, staticBackend("web", echo.port), route("web", "web")),
  );
  const port = Number(new URL(gateway.url(8443)).port);
  assert.equal((await shake(port)).version, "TLSv1.3");
  assert.equal((await shake(port, { servername: "b.test", checkServerIdentity: () => undefined })).version, "TLSv1.2");
  await assert.rejects(shake(port, { servername: "c.test" }), REFUSED);
});

prove([], "a listener with options that cannot be read fails its handshakes", async (context) => {
  for (const options of [
    "cipherSuites: 'TLS13_AES_128_GCM_SHA256', gwproxy.dev/cipher-suites: 'TLS13_AES_128_GCM_SHA256'",
    "cipherSuites: 'RC4'",
    "gwproxy.dev/min-protocol-version: '1.1'",
    "gwproxy.dev/min-protocol-version: '1.3', gwproxy.dev/max-protocol-version: '1.2'",
  ]) {
    const { port } = await serve(context, "", options);
    await assert.rejects(shake(port), REFUSED, options);
  }
});

prove([], "a change meets new handshakes, and connections that are open go on", async (context) => {
  const { gateway, port } = await serve(context, "minProtocolVersion: '1.2'");
  const socket = connect({ host: "127.0.0.1", port, servername: "a.test", ca: AUTHORITY.certificate });
  context.after(() => void socket.destroy());
  await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
  const echo = await startEcho(context);
  const changed = policy("p", { refs: gatewayRef(), says: "frontend: {tls: {maxProtocolVersion: '1.2'}}" });
  await gateway.change(documents(gatewayWith(), SECRET, staticBackend("web", echo.port), route("web", "web"), changed));
  assert.equal((await shake(port)).version, "TLSv1.2");
  socket.write("GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n");
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) text += chunk as string;
  assert.match(text, /^HTTP\/1\.1 200 /);
});
