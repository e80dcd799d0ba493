/** `retry` of an HTTPRoute's rule (Gateway API, experimental channel) through real sockets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startFlaky } from "../../support/servers/flaky.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf } from "../../support/proofs/prove.ts";

/** A route to the port, its rule with this `retry`, and these manifests beside it. */
function manifests(port: number, retry: string, ...more: readonly string[]): string {
  const retrying = route("web", "web").replace("    - name: rule\n", `$&      retry: ${retry}\n`);
  return documents(GATEWAY, staticBackend("web", port), retrying, ...more);
}

test("a rule tries again as often and after the answers that it says, and after a broken connection", async (t) => {
  const context = contextOf(t);
  const flaky = await startFlaky(context, [500, 502, "reset", 200, 503, 500, 500, 500, 500]);
  const gateway = await startGateway(context, manifests(flaky.port, "{attempts: 3, codes: [500, 502]}"));
  const statuses = [];
  for (let at = 0; at < 3; at++) statuses.push((await call(gateway.url())).status);
  assert.deepEqual(statuses, [200, 503, 500]);
  assert.equal(flaky.seen.length, 9);
});

test("an attempt that outlives the backend's share of the time is tried again", async (t) => {
  const context = contextOf(t);
  const flaky = await startFlaky(context, ["silence", 200]);
  const retry = "{attempts: 1}\n      timeouts: {request: 60s, backendRequest: 2s}";
  const gateway = await startGateway(context, manifests(flaky.port, retry));
  assert.deepEqual([(await call(gateway.url())).status, flaky.seen.length], [200, 2]);
});

test("what the rule says stands in place of a policy, unless the policy overrides", async (t) => {
  const context = contextOf(t);
  const flaky = await startFlaky(context, [500, 200, 500, 200]);
  const policy = (more: string): string => routePolicy("policy", "web", `  traffic: {retry: {codes: [503]}}${more}`);
  const gateway = await startGateway(context, manifests(flaky.port, "{codes: [500]}", policy("")));
  assert.equal((await call(gateway.url())).status, 200);
  await gateway.change(manifests(flaky.port, "{codes: [500]}", policy("\n  strategy: {inheritance: Override}")));
  assert.equal((await call(gateway.url())).status, 500);
});
