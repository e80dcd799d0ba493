/** What a change of a listener means for connections that are open: none is dropped, some are told to end. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { ClientHttp2Session } from "node:http2";
import { connect, type TLSSocket } from "node:tls";
import { test, type TestContext } from "node:test";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  gatewayPolicy,
  pemObject,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";

const AUTHORITY = createAuthority("test", validNow());
const HEAD = { ":path": "/", ":authority": "a.test" };

interface Scene {
  readonly gateway: TestGateway;
  /** One keep-alive connection. */
  readonly http1: TLSSocket;
  readonly http2: ClientHttp2Session;
  /** Resolves with the answer's text on the HTTP/1 connection. */
  ask(): Promise<string>;
  change(listeners: readonly string[], ...more: readonly string[]): Promise<void>;
}

function secret(name: string, ...hosts: readonly string[]): string {
  const { certificate, key } = createLeaf(AUTHORITY, hosts, validNow());
  return pemObject("Secret", name, { "tls.crt": certificate, "tls.key": key });
}

function manifest(listeners: readonly string[]): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gwproxy
  listeners:
${listeners.map((listener) => `    - ${listener}`).join("\n")}
`;
}

const https = (name: string, hostname: string, options = ""): string =>
  `{name: ${name}, port: 8443, protocol: HTTPS, hostname: "${hostname}", tls: {certificateRefs: [{name: cert}]${options}}}`;

/** A listener for a.test and one for b.test, with a connection of each protocol to the first. */
async function scene(t: TestContext): Promise<Scene> {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const rest = [staticBackend("web", echo.port), route("web", "web")];
  const both = [https("a", "a.test"), https("b", "b.test")];
  const cert = secret("cert", "a.test", "b.test");
  const gateway = await startGateway(context, documents(manifest(both), cert, ...rest));
  const { hostname: host, port } = new URL(gateway.url(8443));
  const tls = { ca: AUTHORITY.certificate, servername: "a.test" };
  const http1 = connect({ host, port: Number(port), ...tls });
  await once(http1, "secureConnect");
  http1.on("error", () => undefined);
  t.after(() => http1.destroy());
  const http2 = await connectHttp2(`https://${host}:${port}`, tls);
  t.after(() => http2.destroy());
  let text = "";
  http1.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
  const ask = async (): Promise<string> => {
    text = "";
    http1.write("GET / HTTP/1.1\r\nhost: a.test\r\n\r\n");
    while (!/\r\n\r\n[^]*\}$/.test(text) && !http1.destroyed) await new Promise(setImmediate);
    return text;
  };
  assert.doesNotMatch(await ask(), /connection: close/);
  assert.equal((await sendHttp2(http2, HEAD)).status, 200);
  return {
    gateway,
    http1,
    http2,
    ask,
    change: (listeners, ...more) =>
      gateway.change(
        documents(
          manifest(listeners),
          ...rest,
          ...(more.some((text) => text.includes("Secret")) ? [] : [cert]),
          ...more,
        ),
      ),
  };
}

async function goesOn({ http1, http2, ask }: Scene): Promise<void> {
  assert.match(await ask(), /^HTTP\/1\.1 200(?![^]*connection: close)/);
  assert.equal((await sendHttp2(http2, HEAD)).status, 200);
  assert.ok(!http1.destroyed && !http2.closed);
}

/** The next answer is the last, and no request is lost. */
async function ends({ http1, http2, ask }: Scene, status: number): Promise<void> {
  if (!http2.closed) await once(http2, "goaway");
  const closed = once(http1, "close");
  assert.match(await ask(), new RegExp(`^HTTP/1\\.1 ${status}[^]*connection: close`));
  await closed;
}

test("another certificate, another route and another listener leave connections as they are", async (t) => {
  const open = await scene(t);
  await open.change([https("a", "a.test"), https("b", "b.test")], secret("cert", "a.test", "b.test"));
  await goesOn(open);
  await open.change([https("a", "a.test")]);
  await goesOn(open);
  await open.change([https("a", "a.test"), https("c", "c.test")]);
  await goesOn(open);
});

test("connections of a listener with other TLS settings end after their answers", async (t) => {
  const open = await scene(t);
  const stricter = https("a", "a.test", ', options: {gwproxy.dev/min-protocol-version: "1.3"}');
  await open.change([stricter, https("b", "b.test")]);
  await ends(open, 200);
});

test("connections of a listener with another name end after their answers", async (t) => {
  const open = await scene(t);
  await open.change([https("a", "c.test"), https("b", "b.test")]);
  await ends(open, 404);
});

test("connections end after their answers when a policy changes how the Gateway speaks TLS", async (t) => {
  const open = await scene(t);
  const both = [https("a", "a.test"), https("b", "b.test")];
  await open.change(both, gatewayPolicy("tls", '  frontend: {tls: {minProtocolVersion: "1.3"}}'));
  await ends(open, 200);
});
