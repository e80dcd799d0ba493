/** Listeners that show an identity of the SPIFFE workload API: who is let in, what happens without one, and what is refused. */
import assert from "node:assert/strict";
import { request, type RequestOptions } from "node:https";
import { connect } from "node:net";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import { test, type TestContext } from "node:test";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  gatewayOf,
  gatewayPolicy,
  pemObject,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";
import {
  createIntermediate,
  createTrustDomain,
  issueSvid,
  type Authority,
  type Svid,
} from "../../support/fixtures/svid.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";
import { answerOf, presentsIdentity, startAgent, type WorkloadAgent } from "../../support/servers/workload-agent.ts";

const SOURCE = "gwproxy.dev/tls-certificate-source";
const OPTION = `options: {${SOURCE}: SPIFFE}`;
const REFUSED = /alert|ECONNRESET|socket hang up|disconnected before/;
const OWN = createTrustDomain("example.org");
const GATE = issueSvid(OWN, "/ns/edge/sa/gateway");
const CLIENT = issueSvid(OWN, "/ns/shop/sa/cart");
const WEB = createAuthority("web", validNow());
const PLAIN = createLeaf(WEB, ["plain.test"], validNow());
const SECRET = pemObject("Secret", "plain", { "tls.crt": PLAIN.certificate, "tls.key": PLAIN.key });

const https = (name: string, tls: string, hostname = ""): string =>
  `{name: ${name}, port: 8443, protocol: HTTPS${hostname === "" ? "" : `, hostname: ${hostname}`}${tls === "" ? "" : `, tls: {${tls}}`}}`;
const WHO = gatewayPolicy(
  "who",
  "  traffic: {phase: PreRouting, transformation: {response: {set: [{name: x-who, value: source.spiffeId}]}}}",
);

async function serve(t: TestContext, agent: WorkloadAgent | undefined, gateway: string): Promise<TestGateway> {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const rest = [SECRET, WHO, staticBackend("web", echo.port), route("web", "web")];
  const settings = { log: recordingLog().log, ...(agent && { spiffeEndpoint: agent.endpoint }) };
  return startGateway(context, documents(gateway, ...rest), settings);
}

const portOf = (gateway: TestGateway): number => Number(new URL(gateway.url(8443)).port);

function shown(client: Svid | undefined): ConnectionOptions {
  return client === undefined ? {} : { cert: client.certificate, key: client.privateKey };
}

interface Answer {
  readonly status: number;
  readonly who: string | undefined;
  /** Serial number of the certificate that the gateway showed. */
  readonly server: string;
}

/** @param options over those of a client that is a workload and asks for any host */
function ask(gateway: TestGateway, options: RequestOptions = {}): Promise<Answer> {
  const usual = { ...shown(CLIENT), ca: OWN.certificate, checkServerIdentity: () => undefined };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: "127.0.0.1", port: portOf(gateway), agent: false, servername: "", ...usual, ...options },
      (response) => {
        const { serialNumber } = (response.socket as TLSSocket).getPeerCertificate();
        const who = response.headers["x-who"]?.toString();
        response.resume();
        response.on("end", () => resolve({ status: response.statusCode ?? 0, who, server: serialNumber }));
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}

test("the listener shows the identity, and lets in workloads that a trust domain vouches for", async (t) => {
  const partner = createTrustDomain("partner.test");
  const agent = await startAgent(contextOf(t), answerOf(GATE, OWN, [partner]));
  const gateway = await serve(t, agent, gatewayOf([https("mtls", OPTION)]));
  const own = await ask(gateway);
  assert.deepEqual([own.status, own.who, own.server], [200, CLIENT.id, GATE.serialNumber]);
  assert.equal((await ask(gateway, { servername: "a.test" })).status, 200);
  const federated = issueSvid(partner, "/cart");
  assert.equal((await ask(gateway, shown(federated))).who, federated.id);
  const forged = ["spiffe://example.org/ns/shop/sa/cart"];
  const strangers: Readonly<Record<string, Svid>> = {
    unknown: issueSvid(createTrustDomain("elsewhere.org"), "/cart"),
    namesake: issueSvid(createTrustDomain("example.org"), "/ns/shop/sa/cart"),
    forged: issueSvid(partner, "/cart", { uris: forged }),
    forgedBelow: issueSvid(createIntermediate(partner), "/cart", { uris: forged }),
    two: issueSvid(OWN, "/cart", { uris: [CLIENT.id, `${CLIENT.id}2`] }),
    host: issueSvid(OWN, "/cart", { uris: [], dns: ["cart.test"] }),
  };
  for (const [name, stranger] of Object.entries(strangers))
    await assert.rejects(ask(gateway, shown(stranger)), REFUSED, name);
  await assert.rejects(ask(gateway, { cert: undefined, key: undefined }), REFUSED);
});

test("clients may stand below an authority that a bundle vouches for", async (t) => {
  const below = createIntermediate(OWN);
  const agent = await startAgent(contextOf(t), answerOf(issueSvid(below, "/gate"), OWN));
  const gateway = await serve(t, agent, gatewayOf([https("mtls", OPTION)]));
  const other = issueSvid(createIntermediate(OWN), "/cart");
  assert.equal((await ask(gateway, shown(other))).who, other.id, "with one trust domain");
  const partner = createTrustDomain("partner.test");
  const next = issueSvid(below, "/gate");
  agent.send(answerOf(next, OWN, [partner]));
  await presentsIdentity(gateway.proxy, next);
  const sibling = issueSvid(below, "/cart");
  assert.equal((await ask(gateway, shown(sibling))).who, sibling.id, "with several, below our own issuer");
});

test("the listener next to it on the same port keeps its certificate and asks nobody who they are", async (t) => {
  const agent = await startAgent(contextOf(t), answerOf(GATE, OWN));
  const plain = https("plain", "certificateRefs: [{name: plain}]", "plain.test");
  const gateway = await serve(t, agent, gatewayOf([plain, https("mtls", OPTION, "mtls.test")]));
  const anonymous = { cert: undefined, key: undefined };
  const host = (name: string) => ({ servername: name, headers: { host: name } });
  assert.equal((await ask(gateway, { ...anonymous, ...host("plain.test"), ca: WEB.certificate })).status, 200);
  assert.equal((await ask(gateway, host("mtls.test"))).who, CLIENT.id);
  await assert.rejects(ask(gateway, { ...anonymous, ...host("mtls.test") }), REFUSED);
  const across = { ...anonymous, servername: "plain.test", headers: { host: "mtls.test" }, ca: WEB.certificate };
  assert.equal((await ask(gateway, across)).status, 421, "the other listener's door is no way in");
});

test("another identity is for new handshakes, and no session goes on from before", async (t) => {
  const agent = await startAgent(contextOf(t), answerOf(GATE, OWN));
  const gateway = await serve(t, agent, gatewayOf([https("mtls", OPTION)]));
  for (const servername of ["", "a.test"]) assert.equal((await ask(gateway, { servername })).server, GATE.serialNumber);
  const kept = keepOpen(gateway);
  t.after(() => void kept.socket.destroy());
  await kept.ask();
  const next = issueSvid(OWN, "/ns/edge/sa/gateway");
  agent.send(answerOf(next, OWN));
  await presentsIdentity(gateway.proxy, next);
  await kept.ask();
  for (const servername of ["", "a.test"]) assert.equal((await ask(gateway, { servername })).server, next.serialNumber);

  const renewed: Authority = createTrustDomain("example.org");
  const sessions: Buffer[] = [];
  const first = await handshake(gateway, { maxVersion: "TLSv1.2" }, sessions);
  assert.equal(first, false);
  for (const session of sessions) assert.equal(await handshake(gateway, { maxVersion: "TLSv1.2", session }), false);
  agent.send(answerOf(issueSvid(OWN, "/ns/edge/sa/gateway"), renewed));
  await assert.rejects(async () => {
    for (;;) await ask(gateway);
  }, REFUSED);
});

/** One connection for several requests, each of which has to be answered on it. */
function keepOpen(gateway: TestGateway): { readonly socket: TLSSocket; ask(): Promise<void> } {
  const usual = { ...shown(CLIENT), ca: OWN.certificate, checkServerIdentity: () => undefined };
  const socket = connectTls({ host: "127.0.0.1", port: portOf(gateway), ...usual });
  let said = "";
  let asked = 0;
  socket.on("data", (bytes: Buffer) => (said += bytes.toString("latin1")));
  return {
    socket,
    async ask() {
      asked++;
      socket.write("GET / HTTP/1.1\r\nhost: a.test\r\n\r\n");
      while (said.split("HTTP/1.1 200").length <= asked) {
        if (socket.closed) throw new Error("the connection was closed");
        await new Promise(setImmediate);
      }
    },
  };
}

/** @returns whether a session of before was taken up */
function handshake(gateway: TestGateway, options: ConnectionOptions, sessions: Buffer[] = []): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const usual = { ...shown(CLIENT), ca: OWN.certificate, checkServerIdentity: () => undefined };
    const socket = connectTls({ host: "127.0.0.1", port: portOf(gateway), ...usual, ...options });
    socket.on("session", (session: Buffer) => sessions.push(session));
    socket.on("error", reject);
    socket.on("secureConnect", () => socket.write("GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n"));
    socket.resume();
    socket.on("end", () => resolve(socket.isSessionReused()));
  });
}

test("without an identity every handshake fails, and plain text is not spoken either", async (t) => {
  const listener = gatewayOf([https("mtls", OPTION)]);
  const absent = await serve(t, undefined, listener);
  await assert.rejects(ask(absent), REFUSED);
  const agent = await startAgent(contextOf(t), undefined);
  const gateway = await serve(t, agent, listener);
  await assert.rejects(ask(gateway), REFUSED);
  const plain = connect(portOf(gateway), "127.0.0.1", () => void plain.write("GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"));
  let said = "";
  plain.on("data", (bytes: Buffer) => (said += bytes.toString("latin1")));
  await new Promise((resolve) => plain.on("error", resolve).on("close", resolve));
  assert.doesNotMatch(said, /HTTP/);
  agent.send(answerOf(GATE, OWN));
  await presentsIdentity(gateway.proxy, GATE);
  assert.equal((await ask(gateway)).status, 200);
});

test("an annotation is the default of a Gateway's own listeners and of a ListenerSet's own", async (t) => {
  const agent = await startAgent(contextOf(t), answerOf(GATE, OWN));
  const annotated = (text: string): string =>
    text.replace("metadata: {name: gw}", `metadata: {name: gw, annotations: {${SOURCE}: SPIFFE}}`);
  const inline = `certificateRefs: [{name: plain}], options: {${SOURCE}: Inline}`;
  const gateway = await serve(
    t,
    agent,
    annotated(gatewayOf([https("default", ""), https("inline", inline, "plain.test")])),
  );
  assert.deepEqual(gateway.problems(), []);
  assert.equal((await ask(gateway)).who, CLIENT.id);
  const web = { servername: "plain.test", ca: WEB.certificate, cert: undefined, key: undefined };
  assert.equal((await ask(gateway, { ...web, headers: { host: "plain.test" } })).status, 200);

  const open = gatewayOf(["{name: http, port: 8080, protocol: HTTP}"]).replace(
    "listeners:",
    "allowedListeners: {namespaces: {from: Same}}\n  listeners:",
  );
  const set = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more, annotations: {${SOURCE}: SPIFFE}}
spec:
  parentRef: {name: gw}
  listeners: [{name: extra, port: 8443, protocol: HTTPS}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: extra}
spec:
  parentRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: more}]
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: web}]}]
`;
  const joined = await serve(t, agent, documents(open, set));
  assert.equal((await ask(joined)).status, 200);
});
