/** traffic.cors through real sockets. */
import assert from "node:assert/strict";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  route,
  routePolicy,
  startGateway,
  startWeb,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

const CORS = "GwPolicy spec.traffic.cors";
const PAGE = "https://app.example";

async function guard(context: ProofContext, traffic: string, ...more: readonly string[]): Promise<TestGateway> {
  const echo = await startEcho(context);
  const policy = routePolicy("pages", "web", `  traffic: ${traffic}`);
  return startWeb(context, echo.port, policy, ...more);
}

function preflight(gateway: TestGateway, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return call(gateway.url(), {
    method: "OPTIONS",
    headers: { origin: PAGE, "access-control-request-method": "PUT", ...headers },
  });
}

prove(`${CORS}.allowOrigins[]`, "answers to a page of a listed origin say so, others do not", async (context) => {
  const gateway = await guard(context, `{cors: {allowOrigins: ["https://*.example", "${PAGE}"]}}`);
  const listed = await call(gateway.url(), { headers: { origin: PAGE } });
  assert.equal(listed.status, 200);
  assert.equal(listed.headers["access-control-allow-origin"], PAGE);
  assert.equal(listed.headers["vary"], "Origin");
  const other = await call(gateway.url(), { headers: { origin: "https://evil.test" } });
  assert.equal(other.status, 200);
  assert.equal(other.headers["access-control-allow-origin"], undefined);
});

prove(
  ["allowMethods[]", "allowHeaders[]", "exposeHeaders[]", "maxAge", "allowCredentials"].map(
    (field) => `${CORS}.${field}`,
  ),
  "a preflight is answered without the upstream and says what is allowed",
  async (context) => {
    const gateway = await guard(
      context,
      `{cors: {allowOrigins: ["*"], allowMethods: [PUT], allowHeaders: [x-a], exposeHeaders: [x-b], maxAge: 60, allowCredentials: true}}`,
    );
    const { status, headers, body } = await preflight(gateway);
    assert.equal(status, 200);
    assert.equal(body, "");
    assert.equal(headers["x-upstream"], undefined);
    assert.equal(headers["access-control-allow-origin"], PAGE);
    assert.equal(headers["access-control-allow-methods"], "PUT");
    assert.equal(headers["access-control-allow-headers"], "x-a");
    assert.equal(headers["access-control-expose-headers"], "x-b");
    assert.equal(headers["access-control-max-age"], "60");
    assert.equal(headers["access-control-allow-credentials"], "true");
  },
);

prove(
  `${CORS}.allowOrigins[]`,
  "preflights pass without credentials, and a refusal can be read by the page",
  async (context) => {
    const gateway = await guard(
      context,
      `{cors: {allowOrigins: ["${PAGE}"]}, apiKeyAuthentication: {secretRef: {name: missing}}}`,
    );
    assert.equal((await preflight(gateway)).status, 200);
    const refused = await call(gateway.url(), { headers: { origin: PAGE } });
    assert.equal(refused.status, 401);
    assert.equal(refused.headers["access-control-allow-origin"], PAGE);
  },
);

prove(`${CORS}.allowOrigins[]`, "before routing it also answers where no route is", async (context) => {
  const echo = await startEcho(context);
  const policy = gatewayPolicy("pages", `  traffic: {phase: PreRouting, cors: {allowOrigins: ["${PAGE}"]}}`);
  const gateway = await startGateway(
    context,
    documents(GATEWAY, staticBackend("web", echo.port), route("web", "web", "/web"), policy),
  );
  assert.equal((await preflight(gateway)).headers["access-control-allow-origin"], PAGE);
  const missing = await call(`${gateway.url()}/nowhere`, { headers: { origin: PAGE } });
  assert.equal(missing.status, 404);
  assert.equal(missing.headers["access-control-allow-origin"], PAGE);
});

prove(
  [],
  "the filter of a route beats the policy on it, unless the policy on the Gateway overrides",
  async (context) => {
    const echo = await startEcho(context);
    const filter = '    - filters: [{type: CORS, cors: {allowOrigins: ["https://filter.example"]}}]\n      name: rule';
    const filtered = route("web", "web").replace("    - name: rule", filter);
    const objects = documents(GATEWAY, staticBackend("web", echo.port), filtered);
    const allowed = async (gateway: TestGateway, origin: string): Promise<boolean> =>
      (await call(gateway.url(), { headers: { origin } })).headers["access-control-allow-origin"] === origin;
    const policy = `  traffic: {cors: {allowOrigins: ["${PAGE}"]}}`;
    const gateway = await startGateway(context, documents(objects, routePolicy("pages", "web", policy)));
    assert.ok(await allowed(gateway, "https://filter.example"));
    assert.ok(!(await allowed(gateway, PAGE)));
    const override = gatewayPolicy("pages", `  strategy: {inheritance: Override}\n${policy}`);
    await gateway.change(documents(objects, override));
    assert.ok(await allowed(gateway, PAGE));
    assert.ok(!(await allowed(gateway, "https://filter.example")));
  },
);
