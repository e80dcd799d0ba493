/** Traffic policies on an InferencePool: their level among the others, on each way to a pool, and what explains them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, type Answer } from "../../support/clients/http.ts";
import { documents, GATEWAY, startGateway, staticBackend, type TestGateway } from "../../support/gateway/gateway.ts";
import { model, MODEL_GATEWAY, service } from "../../support/gateway/models.ts";
import { inferencePool, POOL_CHAT, POOL_ROUTE } from "../../support/gateway/inference-pool.ts";
import { gatewayRef, marks, policy, routeRef } from "../../support/proofs/policy-places.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";
import { startEcho, type Echo } from "../../support/servers/echo.ts";
import { startPicker, type Picker } from "../../support/servers/picker.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const POOL = "group: inference.networking.k8s.io, kind: InferencePool, name: llama";
const POOL_REF = `{${POOL}}`;
const OVERRIDE = "strategy: {inheritance: Override}, ";

interface PoolGateway {
  readonly gateway: TestGateway;
  readonly picker: Picker;
  readonly echo: Echo;
  /** The Gateway and the pool, without a route. */
  readonly fixed: string;
}

async function startPool(context: ProofContext, ...more: readonly string[]): Promise<PoolGateway> {
  const picker = await startPicker(context, ({ subset }) => ({ to: subset.join(",") }));
  const echo = await startEcho(context, { tag: "pool" });
  const fixed = documents(GATEWAY, inferencePool({ ports: [echo.port], picker: picker.port }));
  const gateway = await startGateway(context, documents(fixed, ...more));
  assert.deepEqual(
    gateway.problems().filter(({ severity }) => severity === "error"),
    [],
  );
  return { gateway, picker, echo, fixed };
}

const SET_BY_RULE =
  "filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-mark, value: filter}]}}],";
const INLINE = POOL_ROUTE.replace("{name: rule,", `{name: rule, ${SET_BY_RULE}`);

/** Policies that set the same unit, and the one whose value the answer has. */
const LEVELS: readonly {
  readonly policies: readonly (readonly [refs: string, says: string, created?: string])[];
  readonly route?: string;
  readonly wins: string;
}[] = [
  {
    policies: [
      [gatewayRef(), marks("gateway")],
      [POOL_REF, marks("pool")],
    ],
    wins: "pool",
  },
  {
    policies: [
      [gatewayRef("http"), marks("listener")],
      [POOL_REF, marks("pool")],
    ],
    wins: "pool",
  },
  {
    policies: [
      [POOL_REF, marks("pool")],
      [routeRef("web"), marks("route")],
    ],
    wins: "route",
  },
  {
    policies: [
      [POOL_REF, marks("pool")],
      [routeRef("web", "rule"), marks("rule")],
    ],
    wins: "rule",
  },
  { policies: [[POOL_REF, marks("pool")]], route: INLINE, wins: "filter" },
  { policies: [[POOL_REF, OVERRIDE + marks("pool")]], route: INLINE, wins: "pool" },
  {
    policies: [
      [POOL_REF, OVERRIDE + marks("pool")],
      [routeRef("web"), marks("route")],
    ],
    wins: "pool",
  },
  {
    policies: [
      [gatewayRef(), OVERRIDE + marks("gateway")],
      [POOL_REF, marks("pool")],
    ],
    wins: "gateway",
  },
  {
    policies: [
      [POOL_REF, marks("younger"), "2026-02-01T00:00:00Z"],
      [POOL_REF, marks("older"), "2026-01-01T00:00:00Z"],
    ],
    wins: "older",
  },
  {
    // A section means nothing on a pool.
    policies: [[`{${POOL}, sectionName: "8000"}`, marks("section")]],
    wins: "section",
  },
];

test("a pool is more specific than the listener and less than the route, and is explained so", async (t) => {
  const { gateway, fixed } = await startPool(contextOf(t), POOL_ROUTE);
  for (const { policies, route = POOL_ROUTE, wins } of LEVELS) {
    const all = policies.map(([refs, says, created], at) =>
      policy(`p${at}`, { refs, says, ...(created === undefined ? {} : { created }) }),
    );
    await gateway.change(documents(fixed, route, ...all));
    const title = policies.map(([refs, says]) => `${refs} ${says}`).join(" and ");
    assert.equal((await call(gateway.url())).headers["x-mark"], wins, title);
    const [explained] = await gateway.proxy.explain("default/web");
    assert.equal(explained?.rules.length, 1, title);
    const [rule] = explained.rules;
    assert.equal(rule?.backend, "inferencepool/default/llama");
    const modifiers = rule.policies.filter(({ policy: name }) => name === "headerModifiers");
    const level =
      wins === "older" || wins === "section" || wins === "pool" ? "backend" : wins.replace("filter", "filters");
    assert.deepEqual(
      modifiers.map(({ from }) => from.map((source) => source.level)),
      [[level]],
      title,
    );
    assert.equal(modifiers[0]?.lost.length, policies.length + (route === INLINE ? 1 : 0) - 1, title);
  }
  await gateway.change(documents(fixed, POOL_ROUTE));
  assert.equal((await call(gateway.url())).headers["x-mark"], undefined, "the policy is gone");
});

test("of a rule with several backends only the share of the pool gets its policies", async (t) => {
  const { port } = await startEcho(contextOf(t), { tag: "other" });
  const backends = `{${POOL}, weight: 1}, {group: gwproxy.dev, kind: GwBackend, name: other, weight: 1}`;
  const route = POOL_ROUTE.replace(/backendRefs: .*/, `backendRefs: [${backends}]}]`);
  const { gateway, picker } = await startPool(
    contextOf(t),
    staticBackend("other", port),
    route,
    policy("teapot", { refs: POOL_REF, says: "traffic: {directResponse: {status: 418}}" }),
    policy("marks", { refs: gatewayRef(), says: marks("gateway") }),
  );
  const seen = new Set<string>();
  while (seen.size < 2) {
    const { status, headers } = await call(gateway.url());
    seen.add(`${status} ${headers["x-upstream"]} ${headers["x-mark"]}`);
  }
  assert.deepEqual([...seen].sort(), ["200 other gateway", "418 undefined gateway"]);
  assert.equal(picker.streams(), 0);
  const [explained] = await gateway.proxy.explain("default/web");
  assert.deepEqual(
    explained?.rules.map(({ backend, policies }) => [backend, policies.map(({ policy: name }) => name)]),
    [
      ["inferencepool/default/llama", ["headerModifiers", "directResponse"]],
      [undefined, ["headerModifiers"]],
    ],
  );
});

const MODEL = model("llama").replace("backendRef: {name: one, port: 80}", `backendRef: ${POOL_REF}`);
const GRPC = `apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules: [{name: rule, backendRefs: [${POOL_REF}]}]`;
const DELEGATED = documents(
  `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: site}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]}]`,
  POOL_ROUTE.replace(
    "parentRefs: [{name: gw}]",
    "parentRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: site}]",
  ),
);

/** Ways to a pool. */
const WAYS: Readonly<Record<string, string>> = {
  "an HTTPRoute": POOL_ROUTE,
  "a GRPCRoute": GRPC,
  "a delegated HTTPRoute": DELEGATED,
  "a GwBackend": POOL_CHAT,
  "a GwModel": MODEL,
};

function ask(gateway: TestGateway, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return call(`${gateway.url()}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "llama", messages: [{ role: "user", content: "hello" }] }),
  });
}

for (const [way, route] of Object.entries(WAYS))
  test(`traffic policies of a pool are enforced on the way through ${way}`, async (t) => {
    const context = contextOf(t);
    const guard = await startUpstream((request, response) => {
      response.statusCode = request.headers["x-let"] === undefined ? 403 : 200;
      response.end();
    });
    context.after(() => guard.close());
    const picker = await startPicker(context, ({ subset }) => ({ to: subset.join(",") }));
    const echo = await startEcho(context, { tag: "pool" });
    const pool = inferencePool({ ports: [echo.port], picker: picker.port });
    const fixed = documents(way === "a GwModel" ? MODEL_GATEWAY : GATEWAY, pool, route, service("guard", guard.port));
    const gateway = await startGateway(context, fixed);
    const isGrpc = way === "a GRPCRoute";
    const enforce = async (says: string): Promise<void> => {
      await gateway.change(documents(fixed, policy("guard", { refs: POOL_REF, says })));
      assert.deepEqual(
        gateway.problems().filter(({ severity }) => severity === "error"),
        [],
      );
    };
    const send = async (headers: Readonly<Record<string, string>> = {}): Promise<number> =>
      (await ask(gateway, isGrpc ? { ...headers, "content-type": "application/json" } : headers)).status;
    const open = await send();
    assert.equal(echo.seen.length, 1, `${open}`);

    await enforce(
      `traffic: {authorization: {action: Deny, policy: {matchExpressions: ["'x-bad' in request.headers"]}}}`,
    );
    assert.equal(await send({ "x-bad": "1" }), 403);
    assert.equal(await send(), open);
    assert.equal(echo.seen.length, 2);

    // The service of the policy is known to the data plane through nothing but the pool.
    await enforce("traffic: {extAuth: {backendRef: {name: guard, port: 80}, http: {allowedRequestHeaders: [x-let]}}}");
    assert.equal(await send(), 403);
    assert.equal(await send({ "x-let": "1" }), open);
    assert.equal(echo.seen.length, 3);

    await enforce("traffic: {rateLimit: {local: [{requests: 1, unit: Hours}]}}");
    assert.equal(await send(), open);
    assert.equal(await send(), 429);
    assert.equal(echo.seen.length, 4);

    await enforce(
      "traffic: {headerModifiers: {request: {set: [{name: x-seen, value: pool}]}, response: {set: [{name: x-mark, value: pool}]}}}",
    );
    const answer = await ask(gateway);
    assert.equal(answer.headers["x-mark"], "pool");
    assert.equal(echo.seen.at(-1)?.headers["x-seen"], "pool");

    await enforce("traffic: {directResponse: {status: 418}}");
    assert.equal(await send(), 418);
    assert.equal(echo.seen.length, 5);

    await gateway.change(fixed);
    assert.equal(await send(), open);
    assert.equal(echo.seen.length, 6);
  });

const UNUSED: readonly {
  readonly says: string;
  readonly failureMode: "FailOpen" | "FailClose";
  readonly through: "an HTTPRoute" | "a GwBackend" | "a GwModel";
  /** Path of the field, and why it has no effect; undefined when it has one. */
  readonly warning?: readonly [path: string, why: RegExp];
}[] = [
  ...(["an HTTPRoute", "a GwBackend"] as const).map((through) => ({
    says: "backend: {mcp: {authorization: {action: Deny, policy: {matchExpressions: ['true']}}}}",
    failureMode: "FailOpen" as const,
    through,
    warning: ["spec.backend.mcp", /a pool serves models and no tools/] as const,
  })),
  {
    says: "backend: {ai: {defaults: [{field: user, value: me}]}}",
    failureMode: "FailClose",
    through: "an HTTPRoute",
    warning: ["spec.backend.ai", /no provider leads to it; name the pool in custom.backendRef/],
  },
  { says: "backend: {ai: {defaults: [{field: user, value: me}]}}", failureMode: "FailClose", through: "a GwModel" },
  {
    says: "backend: {health: {unhealthyCondition: 'true'}}",
    failureMode: "FailClose",
    through: "an HTTPRoute",
    warning: ["spec.backend.health", /its endpoint picker chooses among all endpoints/],
  },
  { says: "backend: {health: {unhealthyCondition: 'true'}}", failureMode: "FailOpen", through: "an HTTPRoute" },
  { says: "backend: {health: {unhealthyCondition: 'true'}}", failureMode: "FailClose", through: "a GwBackend" },
  {
    says: "backend: {sessionAffinity: {source: request.path}}",
    failureMode: "FailClose",
    through: "a GwBackend",
    warning: ["spec.backend.sessionAffinity", /its endpoint picker chooses the endpoint of every request/],
  },
  { says: "backend: {sessionAffinity: {source: request.path}}", failureMode: "FailOpen", through: "a GwBackend" },
  {
    says: "traffic: {retry: {attempts: 1, codes: [503]}}",
    failureMode: "FailOpen",
    through: "a GwBackend",
    warning: ["spec.traffic.retry", /it is called by the provider of GwBackend default\/chat; set retry on the route/],
  },
  {
    says: "traffic: {retry: {attempts: 1, codes: [503]}}",
    failureMode: "FailOpen",
    through: "a GwModel",
    warning: ["spec.traffic.retry", /it is called by the provider of GwModel default\/llama; set retry on the route/],
  },
  { says: "traffic: {retry: {attempts: 1, codes: [503]}}", failureMode: "FailOpen", through: "an HTTPRoute" },
];

test("a policy says which of its settings have no effect on the pool that it targets, as long as that is so", async (t) => {
  const context = contextOf(t);
  const gateway = await startGateway(context, GATEWAY);
  for (const { says, failureMode, through, warning } of UNUSED) {
    const pool = inferencePool({ ports: [8000], picker: 9002, failureMode });
    const owner = through === "a GwModel" ? MODEL_GATEWAY : GATEWAY;
    const title = `${says} on a pool that is ${failureMode}, through ${through}`;
    await gateway.change(documents(owner, pool, WAYS[through] ?? "", policy("own", { refs: POOL_REF, says })));
    assert.deepEqual(gateway.problems(), [], title);
    const found = gateway.translator
      .diagnostics()
      .map(({ severity, object, path, message }) => [severity, `${object.kind} ${object.name}`, path, message]);
    if (warning === undefined) {
      assert.deepEqual(found, [], title);
      continue;
    }
    const [path, why] = warning;
    const [problem, ...others] = found;
    assert.deepEqual(others, [], title);
    assert.deepEqual(problem?.slice(0, 3), ["warning", "GwPolicy own", path], title);
    assert.match(String(problem?.[3]), /^has no effect on InferencePool default\/llama: /, title);
    assert.match(String(problem?.[3]), why, title);
    const input = gateway.translator.statusInput({
      group: "gwproxy.dev",
      kind: "GwPolicy",
      namespace: "default",
      name: "own",
    });
    assert.ok(input?.kind === "GwPolicy");
    assert.deepEqual(
      input.diagnostics.map(({ path: at }) => at),
      [path],
      title,
    );
  }
});
