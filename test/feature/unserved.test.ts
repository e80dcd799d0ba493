/**
 * Settings that protect close what they govern even where this version does not enforce them, and status names the field.
 * Each request here is one that the setting would refuse, so that the tests hold before and after a setting is served.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PROTECTIONS } from "../../generated/protections.ts";
import { Condition } from "../../src/api/conditions.ts";
import { computeStatus } from "../../src/status/compute.ts";
import type { TestGateway } from "../support/gateway.ts";
import { call } from "../support/http.ts";
import { ALL, gatewayRef, policy, routeRef, serve } from "../support/policy-places.ts";
import { prove } from "../support/prove.ts";

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
const POST = { method: "POST", body: "body", headers: { origin: "http://elsewhere", "sec-fetch-site": "cross-site" } };

async function statusAt(gateway: TestGateway, path: string): Promise<number> {
  return (await call(gateway.url() + path, POST)).status;
}

/** "True Valid: …" of the condition Accepted of the policy `p`. */
function acceptance(gateway: TestGateway): string {
  const facts = gateway.translator.facts({ group: "gwproxy.dev", kind: "GwPolicy", namespace: "default", name: "p" });
  assert.ok(facts);
  const context = { controllerName: "c", acknowledged: () => true, refusal: () => undefined };
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

test("every section of traffic that protects has settings here that close", () => {
  const sections = (PROTECTIONS["gwproxy.dev/GwPolicy"] ?? []).filter((path) => path[1] === "traffic");
  assert.deepEqual(sections.map((path) => path[2]).sort(), Object.keys(CLOSING).sort());
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

prove([], "a setting that does not protect leaves the route open, and status is honest about it", async (context) => {
  const says = "traffic: {delay: {duration: 1ms}}";
  const gateway = await serve(context, policy("p", { refs: routeRef("a"), says }));
  assert.equal(await statusAt(gateway, "/a/one"), 200);
  isHonest(gateway, "spec.traffic.delay");
});
