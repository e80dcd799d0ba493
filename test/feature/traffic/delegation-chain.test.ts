/** Chains of delegation in the data plane: which rule serves a request, with which policies, and what never serves. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  HttpRouteSchema,
  ObjectRefSchema,
  type HttpMatchSchema,
  type TrafficUnitSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import type { Proxy } from "../../../src/proxy/proxy.ts";
import { MAX_DELEGATIONS } from "../../../src/proxy/router/delegation.ts";
import {
  LISTENER,
  listener,
  policy,
  prefix,
  route,
  startDataPlane,
  staticBackend,
  type Rule,
} from "../../support/gateway/data-plane.ts";
import { call } from "../../support/clients/http.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

type Unit = MessageInitShape<typeof TrafficUnitSchema>;
type Match = MessageInitShape<typeof HttpMatchSchema>;

/** Returns a route that serves as a member of groups only. */
function member(name: string, groups: string[], rules: Rule[], hostnames: string[] = []): Resource {
  const object = create(ObjectRefSchema, { kind: "HTTPRoute", namespace: "default", name });
  const message = { key: `httproute/default/${name}`, object, groups, hostnames, rules };
  return resourceOf("HttpRoute", create(HttpRouteSchema, message));
}

/** Returns a rule that hands requests on to groups, each with the weight 1. */
function delegate(path: string, groups: string[], more: Omit<Rule, "$typeName"> = {}): Rule {
  return { matches: prefix(path), backends: groups.map((group) => ({ weight: 1, group })), ...more };
}

/** Returns a rule to the echo server that marks the request, so that the answer names the rule. */
function serve(name: string, matches: Match[], more: Omit<Rule, "$typeName"> = {}): Rule {
  return { name, matches, backends: [{ weight: 1, backend: "backend/default/echo" }], ...more };
}

/** Returns edits of request headers as a filter. */
function filter(header: string, value: string): NonNullable<Rule["filters"]>[number] {
  return { filter: { case: "requestHeaders", value: { set: [{ name: header, value }] } } };
}

function edit(value: string): Unit {
  return { unit: { case: "headerModifiers", value: { request: { set: [{ name: "x-policy", value }] } } } };
}

const onRoute = (name: string) => [{ target: { case: "route", value: `httproute/default/${name}` } as const }];

interface Plane {
  /** Returns the status, and for an answer of the echo server its path and the headers that edits have set. */
  ask(path: string, headers?: Readonly<Record<string, string>>): Promise<string>;
  apply(set: readonly Resource[], removed?: readonly { type: Resource["type"]; key: string }[]): Promise<void>;
  readonly proxy: Proxy;
}

async function startPlane(t: TestContext, resources: readonly Resource[]): Promise<Plane> {
  const upstream = await startUpstream((request, response) =>
    response.end(`${request.url} ${request.headers["x-rule"] ?? "-"} ${request.headers["x-policy"] ?? "-"}`),
  );
  t.after(() => upstream.close());
  const plane = await startDataPlane([listener(), staticBackend("echo", upstream.port), ...resources]);
  t.after(() => plane.proxy.close());
  const ask: Plane["ask"] = async (path, headers = {}) => {
    const { status, body } = await call(`${plane.url}${path}`, { headers });
    return status === 200 ? body : String(status);
  };
  const apply: Plane["apply"] = async (set, removed = []) => {
    const { refused } = await plane.proxy.apply({ set, removed });
    assert.deepEqual(refused, []);
  };
  return { ask, apply, proxy: plane.proxy };
}

test("a member serves what its own rules and those of its parents match", async (t) => {
  const { ask } = await startPlane(t, [
    route("root", [
      delegate("/team", ["g"], { matches: [{ path: { case: "prefix", value: "/team" }, method: "GET" }] }),
      serve("own", prefix("/"), { filters: [filter("x-rule", "own")] }),
    ]),
    member("narrow", ["g"], [serve("a", prefix("/team/a"), { filters: [filter("x-rule", "narrow")] })]),
    member(
      "headers",
      ["g"],
      [
        serve(
          "b",
          [
            {
              path: { case: "prefix", value: "/team" },
              headers: [{ name: "x-b", value: { case: "exact", value: "1" } }],
            },
          ],
          {
            filters: [filter("x-rule", "headers")],
          },
        ),
        serve("outside", prefix("/elsewhere"), { filters: [filter("x-rule", "outside")] }),
      ],
    ),
    member("hosts", ["g"], [serve("h", prefix("/team/h"), { filters: [filter("x-rule", "hosts")] })], ["other.test"]),
  ]);
  assert.equal(await ask("/team/a/x"), "/team/a/x narrow -");
  assert.equal(await ask("/team/z", { "x-b": "1" }), "/team/z headers -");
  assert.equal(await ask("/team/z"), "404", "no member has a rule, and the request does not fall to another rule");
  assert.equal(await ask("/elsewhere"), "/elsewhere own -", "a member serves nothing outside of its parents' matches");
  assert.equal(await ask("/team/h"), "404");
  assert.equal(await ask("/team/h", { host: "other.test" }), "/team/h hosts -");
});

test("policies and filters of a chain merge, the more specific route wins, and a lock holds", async (t) => {
  const { ask, apply, proxy } = await startPlane(t, [
    route("root", [delegate("/", ["g"], { name: "all", filters: [filter("x-rule", "root")], requestTimeoutMs: 5000 })]),
    member(
      "middle",
      ["g"],
      [
        delegate("/m", ["h"]),
        serve("own", prefix("/own")),
        serve("set", prefix("/set"), { filters: [filter("x-rule", "set")] }),
      ],
    ),
    member("leaf", ["h"], [serve("leaf", prefix("/m"))]),
    policy("root", { targets: onRoute("root"), units: [edit("root")] }),
    policy("leaf", { targets: onRoute("leaf"), units: [edit("leaf")] }),
  ]);
  // Filters of a route and policies on it are one unit, and filters of the parent give way to a policy of the member.
  assert.equal(await ask("/own"), "/own root -");
  assert.equal(await ask("/set"), "/set set -");
  assert.equal(await ask("/m/x"), "/m/x - leaf");
  const [explained] = await proxy.explain("default/leaf");
  assert.deepEqual(explained?.via, ["HTTPRoute default/root rule all", "HTTPRoute default/middle rule 0"]);
  const modifiers = explained.rules[0]?.policies.find(({ policy: name }) => name === "headerModifiers");
  assert.deepEqual(modifiers?.from, [{ level: "route", origin: "GwPolicy default/leaf spec.traffic.headerModifiers" }]);
  assert.deepEqual(
    modifiers.lost.map(({ level, route: from, to, reason }) => [level, from, to.level, reason]),
    [
      ["route", "HTTPRoute default/root", "filters", "moreSpecific"],
      ["filters", "HTTPRoute default/root", "route", "moreSpecific"],
    ],
  );
  const [root] = await proxy.explain("default/root");
  assert.deepEqual(root?.rules[0]?.delegates, [""], "the groups of this test have no name behind their parent");
  await apply([policy("root", { targets: onRoute("root"), override: true, units: [edit("locked")] })]);
  assert.equal(await ask("/m/x"), "/m/x - locked");
  assert.equal(await ask("/set"), "/set - locked");
  await apply([], [{ type: "Policy", key: "policy/default/root" }]);
  assert.equal(await ask("/m/x"), "/m/x - leaf");
  assert.equal(await ask("/own"), "/own root -");
});

test("an inherited rewrite replaces the prefix of the rule that says it", async (t) => {
  const rewrite = (to: string) =>
    ({ filter: { case: "urlRewrite", value: { path: { change: { case: "prefix", value: to } } } } }) as const;
  const { ask } = await startPlane(t, [
    route("root", [delegate("/api", ["g"], { filters: [rewrite("/v1")] })]),
    member("plain", ["g"], [serve("a", prefix("/api/a"))]),
    member("own", ["g"], [serve("b", prefix("/api/b"), { filters: [rewrite("/own")] })]),
  ]);
  assert.equal(await ask("/api/a/x?q=1"), "/v1/a/x?q=1 - -");
  assert.equal(await ask("/api/b/x"), "/own/x - -");
});

test("a delegation that leads back is answered 500, and one that is too long as well", async (t) => {
  const long = Array.from({ length: MAX_DELEGATIONS + 1 }, (_, at) =>
    member(`long-${at}`, [`l${at}`], [delegate("/long", [`l${at + 1}`]), serve("end", prefix(`/long/${at}`))]),
  );
  const { ask } = await startPlane(t, [
    route("root", [delegate("/a", ["g"]), delegate("/long", ["l0"])]),
    member("a", ["g", "back"], [delegate("/a/b", ["h"]), serve("ok", prefix("/a/1"))]),
    member("b", ["h"], [delegate("/a/b", ["back"]), serve("ok", prefix("/a/b/1"))]),
    ...long,
  ]);
  assert.equal(await ask("/a/1"), "/a/1 - -");
  assert.equal(await ask("/a/b/1"), "/a/b/1 - -");
  assert.equal(await ask("/a/b/2"), "500");
  assert.equal(await ask("/long/0"), "/long/0 - -");
  assert.equal(await ask("/long/30"), "/long/30 - -");
  assert.equal(await ask("/long/nowhere"), "500");
});

test("weights choose among the groups and backends that can serve the request", async (t) => {
  const only = (name: string, group: string, path: string): Resource =>
    member(name, [group], [serve(name, prefix(path), { filters: [filter("x-rule", name)] })]);
  const { ask } = await startPlane(t, [
    route("root", [
      delegate("/union", ["a", "b", "gone"]),
      {
        matches: prefix("/split"),
        backends: [
          { weight: 0, group: "a" },
          { weight: 1, backend: "backend/default/echo" },
        ],
      },
      { matches: prefix("/none"), backends: [{ weight: 0, group: "a" }] },
      { matches: prefix("/bad"), backends: [{ weight: 1, invalidReason: "HTTPRoute default/x not found" }] },
    ]),
    only("a", "a", "/union/a"),
    only("b", "b", "/union/b"),
  ]);
  for (let round = 0; round < 5; round++) {
    assert.equal(await ask("/union/a"), "/union/a a -");
    assert.equal(await ask("/union/b"), "/union/b b -");
  }
  assert.equal(await ask("/union/c"), "404");
  assert.equal(await ask("/split"), "/split - -");
  assert.equal(await ask("/none"), "500");
  assert.equal(await ask("/bad"), "500");
});

test("members and parents come and go, and what is left serves", async (t) => {
  const leaf = member("leaf", ["g"], [serve("leaf", prefix("/t"))]);
  const root = route("root", [delegate("/t", ["g"])], [], LISTENER);
  const { ask, apply } = await startPlane(t, [root, leaf]);
  assert.equal(await ask("/t"), "/t - -");
  await apply([], [{ type: "HttpRoute", key: "httproute/default/leaf" }]);
  assert.equal(await ask("/t"), "404");
  await apply([leaf]);
  assert.equal(await ask("/t"), "/t - -");
  await apply([], [{ type: "HttpRoute", key: "httproute/default/root" }]);
  assert.equal(await ask("/t"), "404");
  await apply([root]);
  await apply([member("leaf", ["g"], [serve("leaf", prefix("/t"), { filters: [filter("x-rule", "new")] })])]);
  assert.equal(await ask("/t"), "/t new -");
});
