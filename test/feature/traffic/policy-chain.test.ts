import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  AuthorizationAction,
  Phase,
  type PolicySchema,
  type TrafficUnitSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import {
  LISTENER,
  listener,
  policy,
  prefix,
  route,
  startDataPlane,
  staticBackend,
  to,
} from "../../support/gateway/data-plane.ts";
import { keyAuth } from "../../support/gateway/key-auth.ts";
import { startUpstream, type TestUpstream } from "../../support/servers/upstream.ts";

type Target = NonNullable<MessageInitShape<typeof PolicySchema>["targets"]>[number];
type Unit = MessageInitShape<typeof TrafficUnitSchema>;

const ROUTE = "httproute/default/r";
const ON_GATEWAY: Target = { target: { case: "gateway", value: "default/gw" } };
const ON_LISTENER: Target = { target: { case: "listener", value: LISTENER } };
const ON_ROUTE: Target = { target: { case: "route", value: ROUTE } };
const ON_RULE: Target = { target: { case: "route", value: ROUTE }, section: "rule" };

/** Sets the header `x-who` of the request. */
function who(value: string): Unit {
  return { unit: { case: "headerModifiers", value: { request: { set: [{ name: "x-who", value }] } } } };
}

/** Sets the header `x-back` of the answer. */
function back(value: string): Unit {
  return { unit: { case: "headerModifiers", value: { response: { set: [{ name: "x-back", value }] } } } };
}

function deny(expression: string): Unit {
  const rules = [{ action: AuthorizationAction.DENY, expressions: [expression] }];
  return { unit: { case: "authorization", value: { rules } } };
}

function upstreamWho(): Promise<TestUpstream> {
  return startUpstream((request, response) => response.end(`who=${request.headers["x-who"]}`));
}

async function answer(url: string, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(url, { headers });
  return `${response.status} ${await response.text()} back=${response.headers.get("x-back")}`;
}

test("the most specific level wins a unit, and the two directions of header edits are apart", async () => {
  const upstream = await upstreamWho();
  const plane = await startDataPlane([
    listener(),
    route("r", [to("b", { name: "rule" })]),
    staticBackend("b", upstream.port),
  ]);
  try {
    await plane.set(policy("gateway", { targets: [ON_GATEWAY], units: [who("gateway"), back("gateway")] }));
    assert.equal(await answer(plane.url), "200 who=gateway back=gateway");
    await plane.set(policy("listener", { targets: [ON_LISTENER], units: [who("listener")] }));
    assert.equal(await answer(plane.url), "200 who=listener back=gateway");
    await plane.set(policy("route", { targets: [ON_ROUTE], units: [who("route")] }));
    assert.equal(await answer(plane.url), "200 who=route back=gateway");
    await plane.set(policy("rule", { targets: [ON_RULE], units: [who("rule")] }));
    assert.equal(await answer(plane.url), "200 who=rule back=gateway");
    await plane.proxy.apply({ set: [], removed: [{ type: "Policy", key: "policy/default/rule" }] });
    assert.equal(await answer(plane.url), "200 who=route back=gateway");
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("within a level the older policy wins, then the smaller key", async () => {
  const upstream = await upstreamWho();
  const plane = await startDataPlane([
    listener(),
    route("r", [to("b")]),
    staticBackend("b", upstream.port),
    policy("young", { createdAtMs: 2n, targets: [ON_ROUTE], units: [who("young")] }),
    policy("z-old", { createdAtMs: 1n, targets: [ON_ROUTE], units: [who("z-old")] }),
    policy("a-old", { createdAtMs: 1n, targets: [ON_ROUTE], units: [who("a-old")] }),
  ]);
  try {
    assert.equal(await answer(plane.url), "200 who=a-old back=null");
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("filters of the route beat attached policies, and an override beats both", async () => {
  const upstream = await upstreamWho();
  const rule = to("b", {
    filters: [{ filter: { case: "requestHeaders", value: { set: [{ name: "x-who", value: "inline" }] } } }],
  });
  const plane = await startDataPlane([
    listener(),
    route("r", [rule]),
    staticBackend("b", upstream.port),
    policy("route", { targets: [ON_ROUTE], units: [who("route"), back("route")] }),
  ]);
  try {
    assert.equal(await answer(plane.url), "200 who=inline back=route");
    await plane.set(policy("gateway", { targets: [ON_GATEWAY], override: true, units: [who("locked")] }));
    assert.equal(await answer(plane.url), "200 who=locked back=route");
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("authorization of all levels applies together", async () => {
  const upstream = await upstreamWho();
  const plane = await startDataPlane([
    listener(),
    route("r", [to("b")]),
    staticBackend("b", upstream.port),
    policy("gateway", { targets: [ON_GATEWAY], units: [deny(`request.headers["x-a"] == "1"`)] }),
    policy("route", { targets: [ON_ROUTE], units: [deny(`request.headers["x-b"] == "1"`)] }),
  ]);
  try {
    const both = { "x-a": "0", "x-b": "0" };
    assert.match(await answer(plane.url, both), /^200 /);
    assert.match(await answer(plane.url, { ...both, "x-a": "1" }), /^403 authorization failed/);
    assert.match(await answer(plane.url, { ...both, "x-b": "1" }), /^403 authorization failed/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("both phases run, and what the first changes is seen by routing", async () => {
  const upstream = await upstreamWho();
  const plane = await startDataPlane([
    listener(),
    route("r", [
      to("b", {
        matches: [
          {
            path: { case: "prefix", value: "/" },
            headers: [{ name: "x-who", value: { case: "exact", value: "pre" } }],
          },
        ],
      }),
    ]),
    staticBackend("b", upstream.port),
    policy("pre", { targets: [ON_GATEWAY], phase: Phase.PRE_ROUTING, units: [who("pre")] }),
    policy("post", { targets: [ON_GATEWAY], phase: Phase.POST_ROUTING, units: [back("post")] }),
  ]);
  try {
    assert.equal(await answer(plane.url), "200 who=pre back=post");
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("a policy that reads the body sees it, and the upstream still gets it", async () => {
  const upstream = await startUpstream((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => (text += part));
    request.on("end", () => response.end(text));
  });
  const plane = await startDataPlane([
    listener(),
    route("r", [to("b")]),
    staticBackend("b", upstream.port),
    policy("body", { targets: [ON_ROUTE], units: [deny(`string(request.body).contains("bad")`)] }),
  ]);
  try {
    const post = async (body: string): Promise<string> => {
      const response = await fetch(plane.url, { method: "POST", body });
      return `${response.status} ${await response.text()}`;
    };
    assert.equal(await post("good"), "200 good");
    assert.equal(await post("a bad one"), "403 authorization failed");
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("response policies see the errors of the data plane too", async () => {
  const plane = await startDataPlane([
    listener(),
    route("r", [to("missing")]),
    policy("route", { targets: [ON_ROUTE], units: [back("route")] }),
  ]);
  try {
    assert.equal(await answer(plane.url), "500 no valid backends back=route");
  } finally {
    plane.proxy.close();
  }
});

test("a policy that cannot be compiled is refused by name and closes what it governs, and nothing else", async () => {
  const upstream = await upstreamWho();
  const plane = await startDataPlane([
    listener(),
    route("r", [to("b", { matches: prefix("/r") })]),
    route("s", [to("b", { matches: prefix("/s") })]),
    staticBackend("b", upstream.port),
  ]);
  try {
    const broken = policy("p", { targets: [ON_ROUTE], units: [{ unit: { case: undefined } }] });
    const { refused } = await plane.proxy.apply({ set: [broken], removed: [] });
    assert.deepEqual(
      refused.map(({ type, key }) => `${type} ${key}`),
      ["Policy policy/default/p"],
    );
    assert.match(await answer(`${plane.url}/r`), /^500 this route is closed by an invalid policy/);
    assert.match(await answer(`${plane.url}/s`), /^200 /);
    await plane.set(policy("p", { targets: [ON_ROUTE], units: [who("mended")] }));
    assert.equal(await answer(`${plane.url}/r`), "200 who=mended back=null");
    assert.equal((await plane.proxy.apply({ set: [broken], removed: [] })).refused.length, 1);
    assert.equal(await answer(`${plane.url}/r`), "200 who=mended back=null");
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});

test("backend settings come from the strongest level, and a refused backend policy closes the backend", async () => {
  const upstream = await startUpstream((request, response) => response.end(String(request.headers.authorization)));
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  const onBackend: Target = { target: { case: "backend", value: "backend/default/b" } };
  try {
    assert.match(await answer(plane.url), /^200 undefined/);
    await plane.set(policy("gateway", { targets: [ON_GATEWAY], backend: { auth: keyAuth("gateway") } }));
    assert.match(await answer(plane.url), /^200 Bearer gateway/);
    await plane.set(policy("backend", { targets: [onBackend], backend: { auth: keyAuth("Basic backend") } }));
    assert.match(await answer(plane.url), /^200 Basic backend/);
    await plane.set(staticBackend("b", upstream.port, { auth: keyAuth("inline") }));
    assert.match(await answer(plane.url), /^200 Bearer inline/);
    await plane.set(
      policy("closed", { targets: [onBackend], units: [{ unit: { case: "failClosed", value: { reason: "bad" } } }] }),
    );
    assert.match(await answer(plane.url), /^500 this route is closed by an invalid policy/);
  } finally {
    plane.proxy.close();
    await upstream.close();
  }
});
