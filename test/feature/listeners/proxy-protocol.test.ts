/** `frontend.proxyProtocol` of a GwPolicy: who the client is according to the load balancer in front. */
import assert from "node:assert/strict";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, GATEWAY, pemObject, route, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { gatewayRef, policy, routeRef } from "../../support/proofs/policy-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { proxyV2 } from "../../support/clients/proxy-header.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";

const AUTHORITY = createAuthority("test", validNow());
const LEAF = createLeaf(AUTHORITY, ["a.test"], validNow());
const SECRET = pemObject("Secret", "a", { "tls.crt": LEAF.certificate, "tls.key": LEAF.key });
const BOTH = `${GATEWAY.trimEnd()}
    - {name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
`;
const CLIENT = { address: "192.0.2.7", port: 4711 };
const V1 = "PROXY TCP4 192.0.2.7 192.0.2.8 4711 80\r\n";
const GET = "GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n";
/** Says who the client is, in a header of the answer. */
const TELL =
  "traffic: {transformation: {response: {set: [{name: x-source, value: \"source.address + ' ' + string(source.port) + ' ' + source.rawAddress\"}]}}}";

interface Served {
  readonly port: number;
  readonly securePort: number;
}

/** @param says flow YAML of `frontend` */
async function serve(context: ProofContext, says: string): Promise<Served> {
  const echo = await startEcho(context);
  const policies = [
    policy("p", { refs: gatewayRef(), says: `frontend: {${says}}` }),
    policy("tell", { refs: routeRef("web"), says: TELL }),
  ];
  const rest = [BOTH, SECRET, staticBackend("web", echo.port), route("web", "web"), ...policies];
  const gateway = await startGateway(context, documents(...rest));
  assert.deepEqual(gateway.problems(), []);
  return { port: Number(new URL(gateway.url()).port), securePort: Number(new URL(gateway.url(8443)).port) };
}

/** Everything that comes back for these bytes. */
function exchange(context: ProofContext, port: number, ...parts: readonly (string | Buffer)[]): Promise<string> {
  const socket = connectTcp(port, "127.0.0.1");
  for (const part of parts) socket.write(part);
  return drained(context, socket);
}

function drained(context: ProofContext, socket: Socket): Promise<string> {
  context.after(() => void socket.destroy());
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(text));
  });
}

const AS_CLIENT = /x-source: 192\.0\.2\.7 4711 127\.0\.0\.1\r\n/;
const AS_BALANCER = /x-source: 127\.0\.0\.1 \d+ 127\.0\.0\.1\r\n/;
const field = (name: string): string => `GwPolicy spec.frontend.proxyProtocol.${name}`;

prove(field("version"), "only headers of the chosen version are taken", async (context) => {
  const first = await serve(context, "proxyProtocol: {version: V1}");
  assert.match(await exchange(context, first.port, V1, GET), AS_CLIENT);
  assert.equal(await exchange(context, first.port, proxyV2(CLIENT), GET), "");
  const all = await serve(context, "proxyProtocol: {version: All}");
  assert.match(await exchange(context, all.port, V1, GET), AS_CLIENT);
  assert.match(await exchange(context, all.port, proxyV2(CLIENT), GET), AS_CLIENT);
});

prove(field("mode"), "where the header is optional, a connection without it is taken as it is", async (context) => {
  const { port } = await serve(context, "proxyProtocol: {mode: Optional}");
  assert.match(await exchange(context, port, GET), AS_BALANCER);
  assert.match(await exchange(context, port, proxyV2(CLIENT), GET), AS_CLIENT);
});

prove([], "without settings version 2 is asked for, and a connection without it is closed", async (context) => {
  const { port } = await serve(context, "proxyProtocol: {}");
  assert.match(await exchange(context, port, proxyV2(CLIENT), GET), AS_CLIENT);
  assert.equal(await exchange(context, port, GET), "");
  assert.equal(await exchange(context, port, V1, GET), "");
});

prove([], "a header without addresses leaves the balancer as the client", async (context) => {
  const { port } = await serve(context, "proxyProtocol: {version: All}");
  assert.match(await exchange(context, port, proxyV2(undefined), GET), AS_BALANCER);
  assert.match(await exchange(context, port, "PROXY UNKNOWN\r\n", GET), AS_BALANCER);
  assert.equal(await exchange(context, port, "PROXY TCP4 a b c d\r\n", GET), "");
});

prove([], "a header that comes in pieces, together with the request, is read all the same", async (context) => {
  const { port } = await serve(context, "proxyProtocol: {}");
  const header = proxyV2(CLIENT);
  const socket = connectTcp({ port, host: "127.0.0.1", noDelay: true });
  const answer = drained(context, socket);
  for (const byte of header.subarray(0, 20)) {
    await new Promise((resolve) => socket.write(Buffer.from([byte]), resolve));
  }
  socket.write(Buffer.concat([header.subarray(20), Buffer.from(GET)]));
  assert.match(await answer, AS_CLIENT);
});

prove([], "the header stands in front of a handshake, and network rules see the client", async (context) => {
  const rule = (address: string): string =>
    `networkAuthorization: {action: Deny, policy: {matchExpressions: ["source.address == '${address}'"]}}`;
  const shake = async (port: number): Promise<string> => {
    const socket = connectTcp(port, "127.0.0.1");
    socket.write(proxyV2(CLIENT));
    const secure = connectTls({ socket, servername: "a.test", ca: AUTHORITY.certificate });
    secure.write(GET);
    return drained(context, secure);
  };
  const open = await serve(context, `proxyProtocol: {}, ${rule("192.0.2.99")}`);
  assert.match(await shake(open.securePort), AS_CLIENT);
  const closed = await serve(context, `proxyProtocol: {}, ${rule("192.0.2.7")}`);
  assert.equal(await shake(closed.securePort), "");
});
