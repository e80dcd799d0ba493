/** What a change of a listener means for connections of bytes that are open: nothing tells them to end, so they do in a pause. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type TLSSocket } from "node:tls";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import {
  documents,
  gatewayOf,
  pemObject,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { testClock, type TestClock } from "../../support/gateway/test-clock.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";
import { startRawUpstream } from "../../support/servers/upstream.ts";

const AUTHORITY = createAuthority("test", validNow());
/** A connection that is to end does after a pause that is as long as this. */
const PAUSE_MS = 5_000;

const terminated = (options = ""): string =>
  `{name: own, port: 9443, protocol: TLS, hostname: a.test, tls: {certificateRefs: [{name: cert}]${options}}}`;
const passed = (hostname: string): string =>
  `{name: pass, port: 9443, protocol: TLS, hostname: ${hostname}, tls: {mode: Passthrough}}`;

function secret(): string {
  const { certificate, key } = createLeaf(AUTHORITY, ["a.test"], validNow());
  return pemObject("Secret", "cert", { "tls.crt": certificate, "tls.key": key });
}

function route(kind: string, listener: string, hostnames = ""): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: ${kind}
metadata: {name: ${listener}}
spec:
  parentRefs: [{name: gw, sectionName: ${listener}}]
  ${hostnames}
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: ${listener}}]}]
`;
}

interface Scene {
  readonly gateway: TestGateway;
  readonly clock: TestClock;
  readonly client: TLSSocket;
  /** Sends it, and resolves when it has come back. */
  say(text: string): Promise<void>;
  change(listeners: readonly string[]): Promise<void>;
}

/** One upstream that echoes bytes behind our handshake, one behind its own; and a connection to a.test through these listeners. */
async function scene(t: TestContext, listeners: readonly string[]): Promise<Scene> {
  const context = contextOf(t);
  const clock = testClock();
  const plain = await startRawUpstream((socket) => socket.pipe(socket));
  t.after(() => plain.close());
  const { certificate, key } = createLeaf(AUTHORITY, ["a.test"], validNow());
  const secure = createServer({ cert: certificate, key }, (socket) => socket.pipe(socket));
  secure.listen(0, "127.0.0.1");
  await once(secure, "listening");
  t.after(() => secure.close());
  const rest = [
    staticBackend("own", plain.port),
    route("TCPRoute", "own"),
    staticBackend("pass", (secure.address() as AddressInfo).port), // a TCP server's address is one
    route("TLSRoute", "pass", "hostnames: [a.test]"),
  ];
  const cert = secret();
  const gateway = await startGateway(context, documents(gatewayOf(listeners), cert, ...rest), { clock });
  const { hostname: host, port } = new URL(gateway.url(9443));
  const client = connect({ host, port: Number(port), ca: AUTHORITY.certificate, servername: "a.test" });
  t.after(() => client.destroy());
  await once(client, "secureConnect");
  let received = "";
  client.setEncoding("utf8").on("data", (chunk: string) => (received += chunk));
  const say = async (text: string): Promise<void> => {
    received = "";
    client.write(text);
    while (received.length < text.length) await once(client, "data");
    assert.equal(received, text);
  };
  await say("hello");
  return {
    gateway,
    clock,
    client,
    say,
    change: (changed) => gateway.change(documents(gatewayOf(changed), secret(), ...rest)),
  };
}

async function endsInAPause({ clock, client, say }: Scene): Promise<void> {
  await clock.advance(PAUSE_MS - 1);
  await say("not yet");
  await clock.advance(1);
  await say("it was no pause");
  const ended = once(client, "end");
  await clock.advance(2 * PAUSE_MS);
  await ended;
}

test("a connection of bytes ends in a pause when its listener has other TLS settings", async (t) => {
  const open = await scene(t, [terminated()]);
  await open.change([terminated(', options: {gwproxy.dev/min-protocol-version: "1.3"}')]);
  await endsInAPause(open);
});

test("a connection whose handshake is the backend's ends in a pause when its listener has another name", async (t) => {
  const open = await scene(t, [passed("a.test")]);
  await open.change([passed("b.test")]);
  await endsInAPause(open);
});

test("a connection of bytes goes on when only the certificate is another one", async (t) => {
  const open = await scene(t, [terminated()]);
  await open.change([terminated()]);
  await open.clock.advance(10 * PAUSE_MS);
  await open.say("still here");
});
