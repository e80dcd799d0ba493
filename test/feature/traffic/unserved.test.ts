/**
 * Settings that protect close what they govern even where this version does not enforce them, and status names the field.
 * Each request here is one that the setting would refuse, so that the tests hold before and after a setting is served.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FAIL_CLOSED_FIELDS } from "../../../generated/fail-closed-fields.ts";
import { Condition } from "../../../src/api/conditions.ts";
import { computeStatus } from "../../../src/status/compute.ts";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { ALL, gatewayRef, policy, routeRef, serve } from "../../support/proofs/policy-places.ts";
import { contextOf, prove } from "../../support/proofs/prove.ts";

const NOWHERE = "url: 'http://127.0.0.1:1'";
const DESCRIPTORS = "descriptors: [{entries: [{name: a, expression: \"'b'\"}]}]";

/** By section of `traffic`: settings under which a plain cross-site POST without credentials is refused. */
const CLOSING: Readonly<Record<string, string>> = {
  jwtAuthentication: "jwtAuthentication: {providers: [{issuer: i, jwks: {inline: '{\"keys\":[]}'}}]}",
  basicAuthentication: "basicAuthentication: {users: ['a:$apr1$x$y']}",
  apiKeyAuthentication: "apiKeyAuthentication: {secretSelector: {matchLabels: {none: such}}}",
  extAuth: `extAuth: {${NOWHERE}, grpc: {}}`,
  authorization: "authorization: {action: Require, policy: {matchExpressions: ['false']}}",
  rateLimit: `rateLimit: {global: {${NOWHERE}, domain: d, ${DESCRIPTORS}}}`,
  buffer: "buffer: {request: {maxBytes: 1}}",
  extProc: `extProc: {${NOWHERE}}`,
  csrf: "csrf: {}",
};
/** By section of `backend`: settings under which nothing may reach a plain upstream. */
const CLOSING_BACKEND: Readonly<Record<string, string>> = {
  tls: "tls: {}",
  tunnel: `tunnel: {${NOWHERE}}`,
  auth: "auth: {jwtSign: {signingKeyRef: {name: none}}}",
  authorization: "authorization: {action: Deny, policy: {matchExpressions: ['true']}}",
  extAuth: `extAuth: {${NOWHERE}, grpc: {}}`,
};
const POST = { method: "POST", body: "body", headers: { origin: "http://elsewhere", "sec-fetch-site": "cross-site" } };

async function statusAt(gateway: TestGateway, path: string): Promise<number> {
  return (await call(gateway.url() + path, POST)).status;
}

/** "True Valid: …" of the condition Accepted of the policy `p`. */
function acceptance(gateway: TestGateway): string {
  const facts = gateway.translator.statusInput({
    group: "gwproxy.dev",
    kind: "GwPolicy",
    namespace: "default",
    name: "p",
  });
  assert.ok(facts);
  const context = {
    controllerName: "c",
    acknowledged: () => true,
    hasDataPlane: () => false,
    nackReason: () => undefined,
  };
  const status = computeStatus(facts, context);
  assert.ok(status.form === "listed");
  const accepted = status.entries[0]?.conditions.find(({ type }) => type === Condition.Accepted);
  assert.ok(accepted);
  return `${accepted.status} ${accepted.reason}: ${accepted.message}`;
}

/** Served without a fault, or named in status as not served. */
function isHonest(gateway: TestGateway, path: string): void {
  const accepted = acceptance(gateway);
  if (accepted.startsWith("True Valid")) return;
  assert.ok(accepted.includes(path), accepted);
}

test("every section that protects has settings here that close", () => {
  const sections = (part: string): (string | undefined)[] =>
    (FAIL_CLOSED_FIELDS["gwproxy.dev/GwPolicy"] ?? [])
      .filter((path) => path[1] === part && path.length === 3)
      .map((path) => path[2])
      .sort();
  assert.deepEqual(sections("traffic"), Object.keys(CLOSING).sort());
  assert.deepEqual(sections("backend"), Object.keys(CLOSING_BACKEND).sort());
});

for (const [section, settings] of Object.entries(CLOSING)) {
  prove([], `${section} on a route refuses what it should, served or not, and status is honest`, async (context) => {
    const gateway = await serve(context, policy("p", { refs: routeRef("a"), says: `traffic: {${settings}}` }));
    assert.deepEqual(gateway.problems(), []);
    assert.ok((await statusAt(gateway, "/a/one")) >= 400);
    assert.equal(await statusAt(gateway, "/b/one"), 200);
    isHonest(gateway, `spec.traffic.${section}`);
  });
}

for (const [section, settings] of Object.entries(CLOSING_BACKEND)) {
  prove([], `${section} of a backend keeps requests from it, served or not, and status is honest`, async (context) => {
    const refs = "{group: gwproxy.dev, kind: GwBackend, name: a}";
    const gateway = await serve(context, policy("p", { refs, says: `backend: {${settings}}` }));
    assert.deepEqual(gateway.problems(), []);
    assert.ok((await statusAt(gateway, "/a/one")) >= 400);
    assert.equal(await statusAt(gateway, "/b/one"), 200);
    isHonest(gateway, `spec.backend.${section}`);
  });

  prove([], `${section} within a GwBackend keeps requests from it, served or not`, async (context) => {
    const { port } = await startEcho(context);
    const closed = staticBackend("a", port).replace(/(static: .*)/, `$1\n  policies: {${settings}}`);
    const gateway = await startGateway(context, documents(GATEWAY, closed, route("a", "a")));
    assert.deepEqual(gateway.problems(), []);
    assert.ok((await statusAt(gateway, "/")) >= 400);
  });
}

prove([], "before routing, too, what is not served closes the whole Gateway", async (context) => {
  const says = `traffic: {phase: PreRouting, ${CLOSING["jwtAuthentication"]}}`;
  const gateway = await serve(context, policy("p", { refs: gatewayRef(), says }));
  for (const path of ALL) assert.ok((await statusAt(gateway, path)) >= 400, path);
  isHonest(gateway, "spec.traffic.jwtAuthentication");
});

prove(
  [],
  "settings that are served hold beside one that is not, and a policy that is mended opens",
  async (context) => {
    const local = "local: [{requests: 100, unit: Hours}]";
    const closed = `traffic: {rateLimit: {${local}, global: {${NOWHERE}, domain: d, ${DESCRIPTORS}}}}`;
    const mended = `traffic: {rateLimit: {${local}}}`;
    const refs = routeRef("a");
    const gateway = await serve(context, policy("p", { refs, says: closed }));
    assert.ok((await statusAt(gateway, "/a/one")) >= 400);
    isHonest(gateway, "spec.traffic.rateLimit.global");
    const open = await serve(context, policy("p", { refs, says: mended }));
    assert.equal(await statusAt(open, "/a/one"), 200);
    assert.match(acceptance(open), /^True Valid/);
  },
);

prove([], "a setting of the frontend that protects closes the Gateway while it is not served", async (context) => {
  const says = "frontend: {networkAuthorization: {action: Deny, policy: {matchExpressions: ['true']}}}";
  const gateway = await serve(context, policy("p", { refs: gatewayRef(), says }));
  // Served, it closes the connection before anything is answered.
  const status = await statusAt(gateway, "/a/one").catch(() => 0);
  assert.ok(status === 0 || status >= 400, String(status));
  isHonest(gateway, "spec.frontend.networkAuthorization");
});

prove([], "a setting that does not protect leaves the route open, and status is honest about it", async (context) => {
  const says = "traffic: {delay: {duration: 1ms}}";
  const gateway = await serve(context, policy("p", { refs: routeRef("a"), says }));
  assert.equal(await statusAt(gateway, "/a/one"), 200);
  isHonest(gateway, "spec.traffic.delay");
});

test("a port beside the name of a GwBackend is no field that is left unserved", async (t) => {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const backendRef = "{group: gwproxy.dev, kind: GwBackend, name: web, port: 9}";
  const policy = routePolicy("ask", "web", `  traffic: {extAuth: {backendRef: ${backendRef}, http: {}}}`);
  const gateway = await startGateway(
    context,
    documents(GATEWAY, staticBackend("web", echo.port), route("web", "web"), policy),
  );
  assert.equal((await call(gateway.url())).status, 200);
  assert.deepEqual(gateway.translator.diagnostics(), []);
});
