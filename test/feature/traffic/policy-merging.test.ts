/** Which of several GwPolicies wins: levels, ties, Override and the phase before routing. */
import assert from "node:assert/strict";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import {
  ALL,
  credentialsAt,
  gatewayRef,
  marks,
  marksAt,
  policy,
  presents,
  routeRef,
  serve,
  TWO_LISTENERS,
  twoRules,
} from "../../support/proofs/policy-places.ts";
import { prove } from "../../support/proofs/prove.ts";

prove([], "of the levels of traffic the most specific one wins: Gateway, listener, route, rule", async (context) => {
  const gateway = await serve(
    context,
    policy("p1", { refs: gatewayRef(), says: marks("gateway") }),
    policy("p2", { refs: gatewayRef("second"), says: marks("listener") }),
    policy("p3", { refs: routeRef("a"), says: marks("route") }),
    policy("p4", { refs: routeRef("a", "two"), says: marks("rule") }),
  );
  assert.deepEqual(await marksAt(gateway, ALL), ["route", "rule", "gateway", "gateway"]);
  assert.deepEqual(await marksAt(gateway, ALL, 8081), ["route", "rule", "listener", "listener"]);
});

prove([], "of the levels of backend settings the backend itself beats rule, route and Gateway", async (context) => {
  const gateway = await serve(
    context,
    policy("p1", { refs: gatewayRef(), says: presents("gateway") }),
    policy("p2", { refs: routeRef("a"), says: presents("route") }),
    policy("p3", { refs: routeRef("a", "two"), says: presents("rule") }),
    policy("p4", { refs: routeRef("b", "one"), says: presents("rule") }),
    policy("p5", { refs: "{group: gwproxy.dev, kind: GwBackend, name: b}", says: presents("backend") }),
  );
  assert.deepEqual(await credentialsAt(gateway, ALL), [
    "Bearer route",
    "Bearer rule",
    "Bearer backend",
    "Bearer backend",
  ]);
});

prove([], "units are won one by one: a level that says nothing about one leaves it alone", async (context) => {
  const gateway = await serve(
    context,
    policy("p1", { refs: gatewayRef(), says: marks("gateway") }),
    policy("p2", { refs: routeRef("a"), says: "traffic: {directResponse: {status: 418}}" }),
  );
  const answer = await call(`${gateway.url()}/a/one`);
  assert.deepEqual([answer.status, answer.headers["x-mark"]], [418, "gateway"]);
});

prove([], "of two policies in one place the older wins, and at the same age the smaller name", async (context) => {
  const gateway = await serve(
    context,
    policy("a-younger", { refs: routeRef("a"), says: marks("younger"), created: "2026-02-01T00:00:00Z" }),
    policy("b-older", { refs: routeRef("a"), says: marks("older"), created: "2026-01-01T00:00:00Z" }),
    policy("b-second", { refs: routeRef("b"), says: marks("second") }),
    policy("a-first", { refs: routeRef("b"), says: marks("first") }),
  );
  assert.deepEqual(await marksAt(gateway, ["/a/one", "/b/one"]), ["older", "first"]);
});

prove("GwPolicy spec.strategy.inheritance", "Override locks a unit for every more specific level", async (context) => {
  const gateway = await serve(
    context,
    policy("p1", { refs: gatewayRef(), says: `strategy: {inheritance: Override}, ${marks("locked")}` }),
    policy("p2", { refs: routeRef("a"), says: marks("route") }),
    policy("p3", { refs: routeRef("a", "two"), says: marks("rule") }),
    policy("p4", { refs: routeRef("b"), says: "traffic: {directResponse: {status: 418}}" }),
  );
  assert.deepEqual(await marksAt(gateway, ["/a/one", "/a/two"]), ["locked", "locked"]);
  // The other units stay open.
  assert.equal((await call(`${gateway.url()}/b/one`)).status, 418);
});

prove(
  "GwPolicy spec.strategy.inheritance",
  "Override keeps the rules of authorization up to its level and drops the later ones",
  async (context) => {
    const authorize = (action: string, expression: string) =>
      `traffic: {authorization: {action: ${action}, policy: {matchExpressions: ['${expression}']}}}`;
    const gateway = await serve(
      context,
      policy("p1", {
        refs: gatewayRef(),
        says: `strategy: {inheritance: Override}, ${authorize("Deny", '"x-bad" in request.headers')}`,
      }),
      policy("p2", { refs: routeRef("a"), says: authorize("Deny", "true") }),
    );
    assert.equal((await call(`${gateway.url()}/a/one`)).status, 200);
    assert.equal((await call(`${gateway.url()}/a/one`, { headers: { "x-bad": "1" } })).status, 403);
  },
);

prove(
  "GwPolicy spec.strategy.inheritance",
  "a filter of the route beats every policy, but not one that overrides",
  async (context) => {
    const { port } = await startEcho(context);
    const filter =
      "filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-mark, value: filter}]}}]";
    const filtered = twoRules("a", "/a", "a").replace("- name: one", `- name: one\n      ${filter}`);
    const base = [
      TWO_LISTENERS,
      staticBackend("a", port),
      filtered,
      policy("p1", { refs: routeRef("a", "one"), says: marks("rule") }),
    ];
    const gateway = await startGateway(context, documents(...base));
    assert.deepEqual(await marksAt(gateway, ["/a/one"]), ["filter"]);
    const locked = policy("p2", { refs: gatewayRef(), says: `strategy: {inheritance: Override}, ${marks("locked")}` });
    await gateway.change(documents(...base, locked));
    assert.deepEqual(await marksAt(gateway, ["/a/one"]), ["locked"]);
  },
);

prove(
  "GwPolicy spec.strategy.inheritance",
  "before routing a listener beats its Gateway, unless the Gateway overrides",
  async (context) => {
    const early = (value: string) =>
      `traffic: {phase: PreRouting, transformation: {response: {set: [{name: x-mark, value: '"${value}"'}]}}}`;
    const listener = policy("p2", { refs: gatewayRef("second"), says: early("listener") });
    const marked = async (says: string) => {
      const gateway = await serve(context, policy("p1", { refs: gatewayRef(), says }), listener);
      return [...(await marksAt(gateway, ["/nowhere"])), ...(await marksAt(gateway, ["/nowhere"], 8081))];
    };
    assert.deepEqual(await marked(early("gateway")), ["gateway", "listener"]);
    assert.deepEqual(await marked(`strategy: {inheritance: Override}, ${early("locked")}`), ["locked", "locked"]);
  },
);

prove("GwPolicy spec.traffic.phase", "PreRouting decides before a route is looked for", async (context) => {
  const rule = `{action: Deny, policy: {matchExpressions: ['"x-bad" in request.headers']}}`;
  const gateway = await serve(
    context,
    policy("p", { refs: gatewayRef(), says: `traffic: {phase: PreRouting, authorization: ${rule}}` }),
  );
  const bad = { headers: { "x-bad": "1" } };
  assert.equal((await call(`${gateway.url()}/nowhere`, bad)).status, 403);
  assert.equal((await call(`${gateway.url()}/nowhere`)).status, 404);
  assert.equal((await call(`${gateway.url()}/a/one`, bad)).status, 403);
  assert.equal((await call(`${gateway.url()}/a/one`)).status, 200);
});

prove(
  "GwPolicy spec.traffic.phase",
  "what PreRouting rewrites is what routes are chosen by, and PostRouting still runs",
  async (context) => {
    const rewrite = `traffic: {phase: PreRouting, transformation: {request: {set: [{name: ":path", value: '"/b/one"'}]}}}`;
    const gateway = await serve(
      context,
      policy("pre", { refs: gatewayRef("second"), says: rewrite }),
      policy("post", { refs: routeRef("b"), says: marks("route b") }),
    );
    assert.deepEqual(await marksAt(gateway, ["/a/one"]), [""]);
    assert.deepEqual(await marksAt(gateway, ["/a/one"], 8081), ["route b"]);
  },
);
