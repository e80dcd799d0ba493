/** What a server that decides over gRPC learns of the client's connection: both ends, the server name and who is calling. */
import assert from "node:assert/strict";
import { request } from "node:https";
import { test } from "node:test";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { startAuthServer } from "../../support/servers/auth-server.ts";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  pemObject,
  route,
  routePolicy,
  startGateway,
  staticBackend,
} from "../../support/gateway/gateway.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { createSelfSigned, validNow } from "../../support/servers/tls-upstream.ts";

const GATEWAY = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gwproxy
  listeners:
    - {name: a, port: 8443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: a}]}}
  tls:
    frontend:
      default:
        validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}
`;

const IN_MESH = createSelfSigned("cart", "URI:spiffe://mesh.test/ns/shop/sa/cart");
const PLAIN = createSelfSigned("cli");
const UNKNOWN = createSelfSigned("cart", "URI:spiffe://mesh.test/ns/shop/sa/cart");

test("the server is told who is calling only when an authority vouches for the name", async (t) => {
  const context = contextOf(t);
  const authority = createAuthority("test", validNow());
  const server = createLeaf(authority, ["a.test"], validNow());
  const auth = await startAuthServer(context);
  const echo = await startEcho(context);
  const ref = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: auth}";
  const gateway = await startGateway(
    context,
    documents(
      GATEWAY,
      pemObject("Secret", "a", { "tls.crt": server.certificate, "tls.key": server.key }),
      pemObject("ConfigMap", "clients", { "ca.crt": IN_MESH.certificate + PLAIN.certificate }),
      staticBackend("auth", auth.port),
      staticBackend("web", echo.port),
      route("web", "web"),
      routePolicy("auth", "web", `  traffic: {extAuth: {${ref}, grpc: {}}}`),
    ),
  );
  assert.deepEqual(gateway.problems(), []);
  const port = Number(new URL(gateway.url(8443)).port);
  const principals: (string | undefined)[] = [];
  for (const pair of [IN_MESH, PLAIN, UNKNOWN, undefined]) {
    const shown = pair === undefined ? {} : { cert: pair.certificate, key: pair.key };
    const tls = { servername: "a.test", ca: authority.certificate, agent: false, ...shown };
    const status = await new Promise((resolve, reject) => {
      const outgoing = request({ host: "127.0.0.1", port, headers: { host: "a.test" }, ...tls }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      outgoing.on("error", reject);
      outgoing.end();
    });
    assert.equal(status, 200);
    const attributes = auth.seen.at(-1)?.attributes;
    principals.push(attributes?.source?.principal);
    assert.equal(attributes?.tlsSession?.sni, "a.test");
    const local = attributes?.destination?.address?.address;
    assert.ok(local?.case === "socketAddress");
    assert.deepEqual([local.value.address, local.value.portSpecifier.value], ["127.0.0.1", port]);
  }
  assert.deepEqual(principals, ["spiffe://mesh.test/ns/shop/sa/cart", "CN=cli", "", ""]);
});
