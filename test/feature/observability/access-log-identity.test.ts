/** Who a request came from, as lines of the access log have it: the certificate, the token, the name in the handshake. */
import assert from "node:assert/strict";
import { request, type RequestOptions } from "node:https";
import { test } from "node:test";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { rawClient } from "../../support/gateway/data-plane.ts";
import { startEcho } from "../../support/servers/echo.ts";
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
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { createSelfSigned, validNow } from "../../support/servers/tls-upstream.ts";
import { createIssuer, keySet } from "../../support/fixtures/tokens.ts";

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

test("what a policy reads from the query is masked in every request of its port, whatever became of it", async (t) => {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const lines = keepLines(context);
  const basic =
    "basicAuthentication: {mode: Optional, users: ['ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='], location: {queryParameter: {name: Ticket}}}";
  const deny = `authorization: {action: Deny, policy: {matchExpressions: ["request.path == '/denied'"]}}`;
  const jwt = `jwtAuthentication: {providers: [{issuer: i, jwks: {inline: '{"keys":[]}'}}], location: {expression: "request.uri.query('pass')[0]"}}`;
  const keys =
    'apiKeyAuthentication: {secretSelector: {matchLabels: {none: such}}, location: {queryParameter: {name: "a b"}}}';
  const objects = documents(
    gatewayOf(["{name: a, port: 8080, protocol: HTTP}", "{name: b, port: 8081, protocol: HTTP}"]),
    staticBackend("web", echo.port),
    route("web", "web", "/web"),
    route("only", "web", "/only").replace("{name: gw}", "{name: gw, sectionName: a}"),
    gatewayPolicy("early", `  traffic: {phase: PreRouting, ${basic}, ${deny}}`),
    routePolicy("late", "only", `  traffic: {${jwt}, ${keys}}`),
    gatewayPolicy("log", "  frontend: {accessLog: {preset: Otel}}"),
  );
  const gateway = await startGateway(context, objects, { telemetry: { accessLog: lines.accessLog } });
  const ask = async (port: number, target: string): Promise<unknown[]> => {
    const { status } = await call(gateway.url(port) + target);
    return [status, (await lines.nextFields())["url.query"]];
  };
  for (const [target, status, query] of [
    ["/denied?Ticket&ticket=s", 403, "Ticket&ticket=REDACTED"],
    ["/web?Ticket=s", 401, "Ticket=REDACTED"],
    ["/web?pass=s&ticket=&x=1", 200, "pass=REDACTED&ticket=REDACTED&x=1"],
    ["/only?x=1&a+b=s&a%20b=s&%61%20b=s&y=2", 401, "x=1&a+b=REDACTED&a%20b=REDACTED&%61%20b=REDACTED&y=2"],
    ["/only?pass=s&p%61ss=s", 401, "pass=REDACTED&p%61ss=REDACTED"],
    ["/nowhere?tic%6Bet=s&a%20b=s&pass=s", 404, "tic%6Bet=REDACTED&a%20b=REDACTED&pass=REDACTED"],
  ] as const)
    assert.deepEqual(await ask(8080, target), [status, query]);
  // Of the other port only the policies of the Gateway speak.
  assert.deepEqual(await ask(8081, "/web?ticket=s&pass=s"), [200, "ticket=REDACTED&pass=s"]);
  const refused = rawClient(Number(new URL(gateway.url(8080)).port), "GET /../x?ticket=s HTTP/1.1\r\nhost: a\r\n\r\n");
  await refused.until(/ 400 /);
  assert.ok(!(await lines.next()).includes("=s"));
});
