/** TCPRoute and TLSRoute from manifests to bytes: connections go where the objects say, and follow a change. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { get } from "node:http";
import { request } from "node:https";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import tls from "node:tls";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, gatewayOf, pemObject, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { endpointSlice, servicePolicy, startReplicas } from "../../support/servers/replicas.ts";
import { startTlsUpstream, validNow } from "../../support/servers/tls-upstream.ts";

const GATEWAY = gatewayOf([
  "{name: tcp, port: 5432, protocol: TCP}",
  "{name: pass, port: 8443, protocol: TLS, hostname: localhost, tls: {mode: Passthrough}}",
  "{name: end, port: 9443, protocol: TLS, tls: {certificateRefs: [{name: own}]}}",
]);

/** A route of the kind to the GwBackend of the same name. */
function route(kind: string, name: string, listener: string, hostnames = ""): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: ${kind}
metadata: {name: ${name}}
spec:
  parentRefs: [{name: gw, sectionName: ${listener}}]
  ${hostnames}
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: ${name}}]}]
`;
}

/** A request over TLS through the port, to whoever answers the handshake. */
function ask(port: number, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: "127.0.0.1", port, servername: "localhost", ca, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve(body));
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}

test("bytes of a TCPRoute reach its backend, and another one after a change", async (t) => {
  const context = contextOf(t);
  const [first, second] = [await startEcho(context, { tag: "first" }), await startEcho(context, { tag: "second" })];
  const objects = (port: number) => documents(GATEWAY, staticBackend("db", port), route("TCPRoute", "db", "tcp"));
  const gateway = await startGateway(context, objects(first.port));
  assert.equal((await call(gateway.url(5432))).headers["x-upstream"], "first");
  await gateway.change(objects(second.port));
  assert.equal((await call(gateway.url(5432))).headers["x-upstream"], "second");
});

test("connections of one client go to one endpoint where sessionAffinity says so, and anywhere else where it fails", async (t) => {
  const context = contextOf(t);
  const replicas = await startReplicas(context, "a", "b", "c", "d");
  const slices = replicas.map(({ port }, at) => endpointSlice(`web-${at}`, port, "[{addresses: [127.0.0.1]}]"));
  const objects = (source: string): string =>
    documents(
      gatewayOf(["{name: tcp, port: 5432, protocol: TCP}"]),
      "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: http, port: 80}]}}",
      ...slices,
      `
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw, sectionName: tcp}]
  rules: [{backendRefs: [{name: web, port: 80}]}]`,
      servicePolicy(`{sessionAffinity: {source: '${source}'}}`),
    );
  const gateway = await startGateway(context, objects("source.address"));
  const port = Number(new URL(gateway.url(5432)).port);
  const served = async (client: number): Promise<ReadonlySet<string>> => {
    const names = new Set<string>();
    for (let times = 0; times < 12; times++) names.add(await askFrom(`127.0.0.${client}`, port));
    return names;
  };
  const all = new Set<string>();
  for (let client = 2; client < 18; client++) {
    const names = await served(client);
    assert.equal(names.size, 1, `client ${client} was at ${[...names].join(", ")}`);
    for (const name of names) all.add(name);
  }
  assert.ok(all.size > 1);
  // There is no request: the expression fails.
  await gateway.change(objects("request.path"));
  assert.ok((await served(2)).size > 1);
});

/** What the upstream says to one HTTP request on a connection of its own from that address. */
function askFrom(localAddress: string, port: number): Promise<string> {
  const options = { host: "127.0.0.1", port, localAddress, agent: false };
  return new Promise((resolve, reject) => {
    get(options, (response) => void text(response).then(resolve, reject)).on("error", reject);
  });
}

test("a TLSRoute passes the handshake on, and a TCPRoute behind our own handshake gets plain bytes", async (t) => {
  const context = contextOf(t);
  const secure = await startTlsUpstream(context, ["localhost"]);
  const echo = await startEcho(context, { tag: "plain" });
  const authority = createAuthority("own", validNow());
  const { certificate, key } = createLeaf(authority, ["localhost"], validNow());
  const gateway = await startGateway(
    context,
    documents(
      GATEWAY,
      pemObject("Secret", "own", { "tls.crt": certificate, "tls.key": key }),
      staticBackend("secure", secure.port),
      staticBackend("plain", echo.port),
      route("TLSRoute", "secure", "pass", "hostnames: [localhost]"),
      route("TCPRoute", "plain", "end"),
    ),
  );
  const portOf = (port: number) => Number(new URL(gateway.url(port)).port);
  assert.match(await ask(portOf(8443), secure.authority), /"serverName":"localhost"/);
  assert.match(await ask(portOf(9443), authority.certificate), /"url":"\/"/);
});

test("a TLS client whose name no listener has is cut off without an alert", async (t) => {
  const gateway = await startGateway(contextOf(t), GATEWAY);
  const port = Number(new URL(gateway.url(8443)).port);
  const socket = tls.connect({ host: "127.0.0.1", port, servername: "other.test" });
  const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException]; // as the event is declared
  assert.equal(error.code, "ECONNRESET");
});

test("a connection that no route takes is closed without a byte", async (t) => {
  const gateway = await startGateway(contextOf(t), GATEWAY);
  const socket = connect(Number(new URL(gateway.url(5432)).port), "127.0.0.1");
  socket.on("error", () => undefined);
  let heard = 0;
  for await (const chunk of socket) heard += (chunk as Buffer).length;
  assert.equal(heard, 0);
});
