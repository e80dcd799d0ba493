/** `explain` of the data plane: what it says about a rule is what requests to the rule meet. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AuthorizationAction,
  Phase,
  TcpRouteSchema,
  type PolicySchema,
  type TrafficUnitSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import {
  LISTENER,
  listener,
  policy,
  route,
  startDataPlane,
  staticBackend,
  to,
} from "../../support/gateway/data-plane.ts";
import { startWorkers } from "../../support/gateway/workers.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { call } from "../../support/clients/http.ts";

type Unit = MessageInitShape<typeof TrafficUnitSchema>;
type Target = NonNullable<MessageInitShape<typeof PolicySchema>["targets"]>[number];

const ROUTE = "httproute/default/r";
const ON_GATEWAY: Target = { target: { case: "gateway", value: "default/gw" } };
const ON_BACKEND: Target = { target: { case: "backend", value: "backend/default/b" } };
const ON_ROUTE: Target = { target: { case: "route", value: ROUTE } };

function edit(part: "request" | "response", value: string): Unit {
  return { unit: { case: "headerModifiers", value: { [part]: { set: [{ name: "x-who", value }] } } } };
}

function deny(path: string): Unit {
  const rules = [{ action: AuthorizationAction.DENY, expressions: [`request.path == '${path}'`] }];
  return { unit: { case: "authorization", value: { rules } } };
}

const INLINE = to("b", {
  filters: [{ filter: { case: "requestHeaders", value: { set: [{ name: "x-who", value: "inline" }] } } }],
});

/** Policies of which some win in each way, and some lose in each. */
function manyPolicies(port: number): Resource[] {
  return [
    listener(),
    route("r", [INLINE]),
    staticBackend("b", port),
    policy("early", { targets: [ON_GATEWAY], phase: Phase.PRE_ROUTING, units: [deny("/early")] }),
    policy("wide", { createdAtMs: 1n, targets: [ON_GATEWAY], units: [edit("request", "wide"), deny("/wide")] }),
    policy("lock", {
      createdAtMs: 2n,
      targets: [ON_GATEWAY],
      override: true,
      units: [edit("response", "lock"), { unit: { case: "hostRewrite", value: {} } }],
    }),
    policy("old", { createdAtMs: 1n, targets: [ON_ROUTE], units: [edit("request", "old"), deny("/old")] }),
    policy("young", {
      createdAtMs: 2n,
      targets: [ON_ROUTE],
      units: [edit("request", "young"), edit("response", "young")],
    }),
  ];
}

const MODIFIERS = "spec.traffic.headerModifiers";
const AUTHORIZATION = "spec.traffic.authorization";
const INLINE_SOURCE = { level: "filters", origin: ROUTE };
const OLD = { level: "route", origin: `GwPolicy default/old ${MODIFIERS}` };
const YOUNG = { level: "route", origin: `GwPolicy default/young ${MODIFIERS}` };
const LOCK = { level: "gateway", origin: `GwPolicy default/lock ${MODIFIERS}` };

const EXPECTED = [
  {
    policy: "authorization",
    preRouting: true,
    from: [{ level: "gateway", origin: `GwPolicy default/early ${AUTHORIZATION}` }],
    lost: [],
  },
  {
    policy: "authorization",
    preRouting: false,
    from: [
      { level: "gateway", origin: `GwPolicy default/wide ${AUTHORIZATION}` },
      { level: "route", origin: `GwPolicy default/old ${AUTHORIZATION}` },
    ],
    lost: [],
  },
  {
    policy: "headerModifiers",
    part: "request",
    preRouting: false,
    from: [INLINE_SOURCE],
    lost: [
      { level: "gateway", origin: `GwPolicy default/wide ${MODIFIERS}`, to: OLD, reason: "moreSpecific" },
      { ...YOUNG, to: OLD, reason: "older" },
      { ...OLD, to: INLINE_SOURCE, reason: "moreSpecific" },
    ],
  },
  {
    policy: "headerModifiers",
    part: "response",
    preRouting: false,
    from: [LOCK],
    lost: [{ ...YOUNG, to: LOCK, reason: "override" }],
  },
  {
    policy: "hostRewrite",
    preRouting: false,
    from: [{ level: "gateway", origin: "GwPolicy default/lock spec.traffic.hostRewrite" }],
    lost: [],
  },
];

test("an explanation names winners and losers as requests meet them, with one thread and with several", async (t) => {
  const upstream = await startUpstream((request, response) => response.end(`who=${request.headers["x-who"]}`));
  t.after(() => upstream.close());
  const plane = await startDataPlane(manyPolicies(upstream.port));
  t.after(() => plane.proxy.close());
  const expected = [{ route: "HTTPRoute default/r", listener: LISTENER, rules: [{ rule: "0", policies: EXPECTED }] }];
  assert.deepEqual(await plane.proxy.explain("default/r"), expected);
  assert.deepEqual(await plane.proxy.explain("default/other"), []);
  const answer = await call(plane.url);
  assert.deepEqual([answer.status, answer.body, answer.headers["x-who"]], [200, "who=inline", "lock"]);
  for (const path of ["/early", "/wide", "/old"]) assert.equal((await call(`${plane.url}${path}`)).status, 403, path);
  const several = await startWorkers(t, manyPolicies(upstream.port));
  assert.deepEqual(await several.workers.explain("default/r"), expected);
  assert.deepEqual(await several.workers.explainGateway("default/gw"), [
    { gateway: "default/gw", port: 80, frontend: [] },
  ]);
});

test("a policy that was refused is explained as the one that closes the route", async (t) => {
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", 1)]);
  t.after(() => plane.proxy.close());
  const bad = policy("bad", { targets: [ON_ROUTE], units: [{ unit: { case: undefined } }] });
  const { refused } = await plane.proxy.apply({ set: [bad], removed: [] });
  assert.equal(refused.length, 1);
  const [explained] = await plane.proxy.explain("default/r");
  const from = [{ level: "route", origin: "GwPolicy default/bad" }];
  assert.deepEqual(explained?.rules[0]?.policies, [{ policy: "failClosed", preRouting: false, from, lost: [] }]);
  assert.equal((await call(plane.url)).status, 500);
});

test("a TCPRoute and a TLSRoute are explained with their backends, and with the policy that closes their Gateway", async (t) => {
  const kinds = ["TCPRoute", "TLSRoute"];
  const routes = kinds.map((kind) => {
    const message = create(TcpRouteSchema, {
      key: `${kind.toLowerCase()}/default/db`,
      object: { kind, namespace: "default", name: "db" },
      parents: [{ listener: LISTENER, hostnames: [] }, { listener: "default/gw.gone" }],
      backends: [
        { weight: 3, backend: "backend/default/b" },
        { weight: 1, invalidReason: "Service default/x does not exist" },
      ],
    });
    return resourceOf("TcpRoute", message);
  });
  const traffic = policy("edit", { targets: [ON_GATEWAY], units: [edit("request", "x")] });
  const plane = await startDataPlane([listener(), ...routes, staticBackend("b", 1), traffic]);
  t.after(() => plane.proxy.close());
  const backends = [
    { backend: "backend/default/b", weight: 3, policies: [] },
    { backend: "", weight: 1, refuses: "Service default/x does not exist", policies: [] },
  ];
  const expected = (policies: unknown[]) =>
    kinds.map((kind) => ({
      route: `${kind} default/db`,
      listener: LISTENER,
      rules: [{ rule: "0", policies, backends }],
    }));
  assert.deepEqual(await plane.proxy.explain("default/db"), expected([]));
  const bad = policy("bad", { targets: [ON_GATEWAY], units: [{ unit: { case: undefined } }] });
  await plane.proxy.apply({ set: [bad], removed: [] });
  const from = [{ level: "gateway", origin: "GwPolicy default/bad" }];
  assert.deepEqual(
    await plane.proxy.explain("default/db"),
    expected([{ policy: "failClosed", preRouting: false, from, lost: [] }]),
  );
  const asks = policy("asks", { targets: [ON_BACKEND], backend: { authorization: { rules: [] } } });
  await plane.proxy.apply({ set: [asks], removed: [] });
  const [raw] = await plane.proxy.explain("default/db");
  assert.equal(raw?.rules[0]?.backends?.[0]?.refuses, "authorization needs requests");
});

const HTTP = { http: { requestTimeoutMs: 1000 } };

test("the settings of a backend are explained with their winners and losers", async (t) => {
  const resources = [
    listener(),
    route("r", [to("b")]),
    staticBackend("b", 1, { tcp: { connectTimeoutMs: 9000 } }),
    policy("wide", {
      targets: [ON_GATEWAY],
      backend: { ...HTTP, tcp: { connectTimeoutMs: 5000 }, authorization: { rules: [] } },
    }),
    policy("mid", { targets: [ON_ROUTE], backend: { ...HTTP, authorization: { rules: [] } } }),
    policy("old", {
      createdAtMs: 1n,
      targets: [ON_BACKEND],
      backend: { ...HTTP, ai: { modelAliases: { a: "b" } } },
    }),
    policy("young", { createdAtMs: 2n, targets: [ON_BACKEND], backend: { ...HTTP, ai: { promptCaching: {} } } }),
  ];
  const plane = await startDataPlane(resources);
  t.after(() => plane.proxy.close());
  const from = (level: string, name: string, field: string) => ({
    level,
    origin: `GwPolicy default/${name} spec.backend.${field}`,
  });
  const own = { level: "own", origin: "GwBackend default/b spec.policies.tcp" };
  const old = from("backend", "old", "http");
  const policies = [
    { policy: "ai.modelAliases", from: [from("backend", "old", "ai.modelAliases")], lost: [] },
    { policy: "ai.promptCaching", from: [from("backend", "young", "ai.promptCaching")], lost: [] },
    {
      policy: "authorization",
      from: [from("gateway", "wide", "authorization"), from("route", "mid", "authorization")],
      lost: [],
    },
    {
      policy: "http",
      from: [old],
      lost: [
        { ...from("gateway", "wide", "http"), to: from("route", "mid", "http"), reason: "moreSpecific" },
        { ...from("route", "mid", "http"), to: old, reason: "moreSpecific" },
        { ...from("backend", "young", "http"), to: old, reason: "older" },
      ],
    },
    {
      policy: "tcp",
      from: [own],
      lost: [{ ...from("gateway", "wide", "tcp"), to: own, reason: "moreSpecific" }],
    },
  ];
  const [explained] = await plane.proxy.explain("default/r");
  assert.deepEqual(explained?.rules, [
    { rule: "0", policies: [], backends: [{ backend: "backend/default/b", weight: 1, policies }] },
  ]);
  const bad = policy("bad", { targets: [ON_BACKEND], units: [{ unit: { case: undefined } }] });
  await plane.proxy.apply({ set: [bad], removed: [] });
  const [closed] = await plane.proxy.explain("default/r");
  assert.equal(closed?.rules[0]?.backends?.[0]?.refuses, "GwPolicy default/bad is invalid");
  assert.equal((await call(plane.url)).status, 500);
});

const ON_PORT: Target = { target: { case: "gateway", value: "default/gw" }, port: 80 };

test("the settings of connections are explained: the port wins over the Gateway, and all rules of the network count", async (t) => {
  const denial = { action: AuthorizationAction.DENY, expressions: ["source.port == 1"] };
  const networkAuthorization = { rules: [denial] };
  const frontend = { http: { maxBufferBytes: 9000 } };
  const plane = await startDataPlane([
    listener(),
    route("r", [to("b")]),
    staticBackend("b", 1),
    policy("wide", {
      targets: [ON_GATEWAY],
      frontend: { ...frontend, keepalive: { timeMs: 1000 }, networkAuthorization },
    }),
    policy("old", { createdAtMs: 1n, targets: [ON_PORT], frontend: { ...frontend, networkAuthorization } }),
    policy("young", { createdAtMs: 2n, targets: [ON_PORT], frontend }),
  ]);
  t.after(() => plane.proxy.close());
  const from = (level: string, name: string, field: string) => ({
    level,
    origin: `GwPolicy default/${name} spec.frontend.${field}`,
  });
  const old = from("port", "old", "http");
  const expected = [
    {
      policy: "http",
      from: [old],
      lost: [
        { ...from("gateway", "wide", "http"), to: old, reason: "moreSpecific" },
        { ...from("port", "young", "http"), to: old, reason: "older" },
      ],
    },
    {
      policy: "networkAuthorization",
      from: [from("gateway", "wide", "networkAuthorization"), from("port", "old", "networkAuthorization")],
      lost: [],
    },
    { policy: "tcp.keepalive", from: [from("gateway", "wide", "tcp.keepalive")], lost: [] },
  ];
  const [explained] = await plane.proxy.explain("default/r");
  assert.deepEqual([explained?.frontend, explained?.rules], [expected, [{ rule: "0", policies: [] }]]);
  const port = { gateway: "default/gw", port: 80, frontend: expected };
  assert.deepEqual(await plane.proxy.explainGateway("default/gw"), [port]);
  assert.deepEqual(await plane.proxy.explainGateway("default/other"), []);
  const bad = policy("bad", { targets: [ON_PORT], units: [{ unit: { case: undefined } }] });
  await plane.proxy.apply({ set: [bad], removed: [] });
  assert.deepEqual(await plane.proxy.explainGateway("default/gw"), [
    { ...port, refuses: "GwPolicy default/bad is invalid" },
  ]);
});
