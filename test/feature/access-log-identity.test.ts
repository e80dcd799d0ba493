/** Who a request came from, as lines of the access log have it: the certificate, the token, the name in the handshake. */
import assert from "node:assert/strict";
import { request, type RequestOptions } from "node:https";
import { test } from "node:test";
import { createAuthority, createLeaf } from "../../src/lib/x509.ts";
import { startEcho } from "../support/echo.ts";
import {
  documents,
  GATEWAY as PLAIN,
  gatewayOf,
  gatewayPolicy,
  pemObject,
  route,
  routePolicy,
  startGateway,
  staticBackend,
} from "../support/gateway.ts";
import { call } from "../support/http.ts";
import { keepLines } from "../support/log-lines.ts";
import { contextOf } from "../support/prove.ts";
import { createSelfSigned, validNow } from "../support/tls-upstream.ts";
import { createIssuer, keySet } from "../support/tokens.ts";

const AUTHORITY = createAuthority("test", validNow());
const SERVER = createLeaf(AUTHORITY, ["a.test"], validNow());
const CLIENT = createSelfSigned("cart", "URI:spiffe://mesh.test/ns/shop/sa/cart");
const LIAR = createSelfSigned("cart", "URI:spiffe://mesh.test/ns/shop/sa/cart");
const GATEWAY = gatewayOf(
  ["{name: a, port: 8443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: a}]}}"],
  `
  tls:
    frontend:
      default:
        validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}
`,
);

function ask(options: RequestOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const tls = { servername: "a.test", ca: AUTHORITY.certificate, agent: false, host: "127.0.0.1" };
    const outgoing = request({ ...tls, ...options }, (response) => {
      response.resume().on("end", resolve);
    });
    outgoing.on("error", reject).end();
  });
}

test("a line names the client by its certificate and its token, and nobody by a certificate that none vouches for", async (t) => {
  const context = contextOf(t);
  const [echo, issuer] = [await startEcho(context), await createIssuer("https://issuer.test")];
  const jwt = `{mode: Optional, providers: [{issuer: "${issuer.name}", jwks: {inline: '${keySet(issuer.jwk)}'}}]}`;
  const lines = keepLines(context);
  const objects = documents(
    GATEWAY,
    pemObject("Secret", "a", { "tls.crt": SERVER.certificate, "tls.key": SERVER.key }),
    pemObject("ConfigMap", "clients", { "ca.crt": CLIENT.certificate }),
    staticBackend("web", echo.port),
    route("web", "web"),
    gatewayPolicy("jwt", `  traffic: {phase: PreRouting, jwtAuthentication: ${jwt}}`),
    gatewayPolicy("log", "  frontend: {accessLog: {preset: Otel}}"),
  );
  const gateway = await startGateway(context, objects, { telemetry: { accessLog: lines.accessLog } });
  const port = Number(new URL(gateway.url(8443)).port);
  const token = await issuer.token({ sub: "ann" });
  const headers = { host: "a.test", authorization: `Bearer ${token}` };
  await ask({ port, headers, cert: CLIENT.certificate, key: CLIENT.key });
  await ask({ port, headers: { host: "a.test" }, cert: LIAR.certificate, key: LIAR.key });
  const names = ["gwp.client.identity", "enduser.id", "tls.server.name"];
  const known = await lines.next();
  assert.ok(!known.includes(token));
  const fields = JSON.parse(known) as Record<string, unknown>;
  assert.deepEqual(
    names.map((name) => fields[name]),
    ["spiffe://mesh.test/ns/shop/sa/cart", "ann", "a.test"],
  );
  const unknown = await lines.nextFields();
  assert.deepEqual(
    names.map((name) => unknown[name]),
    [undefined, undefined, "a.test"],
  );
});

test("a token of an issuer that nobody configured says so in the line", async (t) => {
  const issuer = await createIssuer("https://known.test");
  const jwks = `{inline: '${keySet(issuer.jwk)}'}`;
  const context = contextOf(t);
  const lines = keepLines(context);
  const policy = routePolicy(
    "jwt",
    "web",
    `  traffic: {jwtAuthentication: {providers: [{issuer: "https://known.test", jwks: ${jwks}}]}}`,
  );
  const objects = documents(PLAIN, staticBackend("web", 1), route("web", "web"), policy);
  const gateway = await startGateway(context, objects, { telemetry: { accessLog: lines.accessLog } });
  const lineOf = async (token: string): Promise<Record<string, unknown>> => {
    const { status } = await call(gateway.url(), { headers: { authorization: `Bearer ${token}` } });
    assert.equal(status, 401);
    const fields = await lines.nextFields();
    assert.ok(!JSON.stringify(fields).includes(token.split(".")[2] ?? token));
    assert.equal(fields["reason"], "JwtAuth");
    return fields;
  };
  const strange = /no provider has the issuer "https:\/\/other\.test".*default\/jwt spec\.traffic\.jwtAuthentication/;
  assert.match(String((await lineOf(await issuer.token({ iss: "https://other.test" })))["error"]), strange);
  const other = await createIssuer("https://other.test", { kid: "unheard-of" });
  assert.match(String((await lineOf(await other.token()))["error"]), strange);
  const turned = await issuer.token({}, { kid: "turned" });
  assert.match(String((await lineOf(turned))["error"]), /the issuer "https:\/\/known\.test" has no key named "turned"/);
});
