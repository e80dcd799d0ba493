/** Language models on an InferencePool: failover to a vendor, limits, guards and `ai` policies, in every chat format. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { RateLimitResponse_Code as Code } from "../../../generated/proto/envoy/service/ratelimit/v3/rls_pb.ts";
import { call, parseJson, type Answer } from "../../support/clients/http.ts";
import { LLM_CLIENTS } from "../../support/clients/llm-clients.ts";
import { documents, GATEWAY, gatewayOf, route, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { inferencePool } from "../../support/gateway/inference-pool.ts";
import { gwModel, MODEL_GATEWAY, service, virtual } from "../../support/gateway/models.ts";
import { policy, routeRef } from "../../support/proofs/policy-places.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { ANTHROPIC_KEY, startAnthropic, type AnthropicServer } from "../../support/servers/llm/anthropic.ts";
import { OPENAI_KEY, startOpenAi, type OpenAiServer } from "../../support/servers/llm/openai.ts";
import { startRateServer } from "../../support/servers/rate-server.ts";
import { startPicker, type Picker, type PickerAnswer, type Question } from "../../support/servers/picker.ts";

const POOL_REF = "{group: inference.networking.k8s.io, kind: InferencePool, name: llama}";
/** Puts the pool out of rotation when its picker or its server refuses, so that the next group serves. */
const HEALTH = "health: {unhealthyCondition: 'response.code >= 429', eviction: {consecutiveFailures: 1, duration: 1s}}";

/** The clock stands still unless a test moves it, so that nothing comes back into rotation by itself. */
const START = 1_800_000_000_000;

interface Setup {
  readonly gateway: TestGateway;
  readonly picker: Picker;
  /** The server of the pool, and the vendor behind it in the order of the groups. */
  readonly pool: OpenAiServer;
  readonly vendor: AnthropicServer;
  /** What the picker answers; by default it names the server of the pool. */
  choose: (question: Question) => PickerAnswer;
}

interface Parts {
  /** `policies` of the pool's provider as members in flow YAML. */
  readonly policies?: string;
  readonly groups?: "pool" | "pool and vendor";
  /** The Gateway; by default one without prices. */
  readonly owner?: string;
  readonly more?: readonly string[];
  readonly nowMs?: () => number;
}

async function startModels(
  t: TestContext,
  { policies = HEALTH, groups = "pool", owner = GATEWAY, more = [], nowMs = () => START }: Parts,
): Promise<Setup> {
  const context = contextOf(t);
  const pool = await startOpenAi(context);
  const vendor = await startAnthropic(context);
  pool.answer = { text: "From the pool." };
  vendor.answer = { text: "From the vendor." };
  const setup = { pool, vendor, choose: ({ subset }: Question): PickerAnswer => ({ to: subset.join(",") }) };
  const picker = await startPicker(context, (question) => setup.choose(question));
  const own = `{name: own, custom: {formats: [{type: Completions}], backendRef: ${POOL_REF}}, policies: {auth: {key: ${OPENAI_KEY}}, ${policies}}}`;
  const other = `{name: vendor, llme: {}, host: 127.0.0.1, port: ${vendor.port}, policies: {auth: {key: ${ANTHROPIC_KEY}}}}`;
  const backend = `apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: chat}
spec:
  ai:
    groups: [{providers: [${own}]}${groups === "pool" ? "" : `, {providers: [${other}]}`}]`;
  const retry = route("web", "chat").replace(
    "backendRefs:",
    "retry: {attempts: 1, codes: [429, 503]}\n      backendRefs:",
  );
  const manifests = [inferencePool({ ports: [pool.port], picker: picker.port }), backend, retry, ...more];
  const gateway = await startGateway(context, documents(owner, ...manifests), { nowMs });
  assert.deepEqual(
    gateway.problems().filter(({ severity }) => severity === "error"),
    [],
  );
  return Object.assign(setup, { gateway, picker });
}

function refuse(code: number, text: string): () => PickerAnswer {
  return () => ({ immediate: { status: { code }, body: Buffer.from(text) } });
}

for (const client of LLM_CLIENTS)
  for (const isStreamed of [false, true]) {
    const form = `${client.name}, ${isStreamed ? "streamed" : "whole"}`;

    test(`what a picker answers in place of a model reaches the client in its own format (${form})`, async (t) => {
      const setup = await startModels(t, {});
      for (const [code, text] of [
        [429, "shed"],
        [503, "no capacity"],
      ] as const) {
        setup.choose = refuse(code, text);
        await assert.rejects(
          client.open(setup.gateway.url(), "claude-gpt", isStreamed).ask({ text: "hi" }),
          (error) => {
            const { status, message } = client.errorOf(error);
            assert.equal(status, code);
            assert.match(message, new RegExp(text));
            return true;
          },
        );
      }
      assert.equal(setup.pool.seen.length, 0);
    });

    test(`a pool that sheds hands on to the vendor, whose tokens are charged once (${form})`, async (t) => {
      const setup = await startModels(t, { groups: "pool and vendor", more: [TOKENS] });
      const ask = async () => client.open(setup.gateway.url(), "claude-gpt", isStreamed).ask({ text: "hi" });
      assert.equal((await ask()).text, "From the pool.");
      setup.choose = refuse(429, "shed");
      assert.equal((await ask()).text, "From the vendor.");
      assert.deepEqual([setup.pool.seen.length, setup.vendor.seen.length, setup.picker.streams()], [1, 1, 2]);
      // Each server reports 27 tokens. A request is charged a moment after its last byte has arrived.
      const left = await remaining(setup, (value) => value < 1000 - 27);
      assert.equal(left, 1000 - 27 - 27);
    });
  }

const TOKENS = policy("limit", {
  refs: routeRef("web"),
  says: "traffic: {rateLimit: {local: [{tokens: 1000, unit: Hours}]}}",
});

/** Returns what is left of a limit once the condition holds for it. */
async function remaining({ gateway }: Setup, holds: (value: number) => boolean): Promise<number> {
  for (;;) {
    const { headers } = await call(`${gateway.url()}/v1/models`);
    const value = Number(headers["x-ratelimit-remaining"]);
    if (holds(value)) return value;
  }
}

const ASK = { model: "claude-gpt", max_tokens: 50, messages: [{ role: "user", content: "hi" }] };

function ask(
  { gateway }: Pick<Setup, "gateway">,
  more: object = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  return call(`${gateway.url()}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ ...ASK, ...more }),
  });
}

function textOf({ body }: Answer): string {
  const { choices } = parseJson(body) as {
    readonly choices: readonly { readonly message: { readonly content: string } }[];
  };
  return choices[0]?.message.content ?? "";
}

test("a request that moves from a pool to the vendor is counted once by limits of requests", async (t) => {
  const limit = policy("limit", {
    refs: routeRef("web"),
    says: "traffic: {rateLimit: {local: [{requests: 10, unit: Hours}]}}",
  });
  const setup = await startModels(t, { groups: "pool and vendor", more: [limit] });
  setup.choose = refuse(503, "full");
  const answer = await ask(setup);
  assert.deepEqual([textOf(answer), answer.headers["x-ratelimit-remaining"]], ["From the vendor.", "9"]);
});

/** Prices of the model at the provider of the pool and at the vendor, and what 12 + 8 cached + 7 tokens cost there. */
const PRICES = {
  custom: { models: { "claude-gpt": { rates: { input: "10", cacheRead: "1", output: "20" } } } },
  anthropic: { models: { "claude-gpt": { rates: { input: "100", cacheRead: "10", output: "200" } } } },
};
const [POOL_COST, VENDOR_COST] = [268, 2680];
const PRICED = gatewayOf(
  ["{name: http, port: 8080, protocol: HTTP}"],
  "  infrastructure: {parametersRef: {group: gwproxy.dev, kind: GwParameters, name: prices}}",
);
const CATALOG = `apiVersion: gwproxy.dev/v1alpha1
kind: GwParameters
metadata: {name: prices}
spec: {modelCatalog: {sources: [{configMap: {name: prices}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices}
data: ${JSON.stringify({ "catalog.json": JSON.stringify({ providers: PRICES }) })}
`;

/** Which provider serves each request that the budget allows, and what each is charged. */
const BUDGETS = [
  { groups: "pool", budget: 500, costs: [POOL_COST, POOL_COST] },
  { groups: "pool and vendor", budget: 2900, costs: [POOL_COST, VENDOR_COST] },
] as const;

for (const { groups, budget, costs } of BUDGETS)
  for (const stream of [false, true])
    test(`a budget in dollars holds for the groups of ${groups}, and counts a request once (stream: ${stream})`, async (t) => {
      let spent = 0;
      const limits = await startRateServer(contextOf(t), ({ descriptors: [descriptor] }) => {
        const isOver = spent >= budget;
        spent += Number(descriptor?.hitsAddend);
        return { overallCode: isOver ? Code.OVER_LIMIT : Code.OK };
      });
      const descriptor = `{entries: [{name: team, expression: "'red'"}], unit: Tokens, cost: "uint(llm.cost.total * 1000000.0)"}`;
      const limit = policy("budget", {
        refs: routeRef("web"),
        says: `traffic: {rateLimit: {global: {url: "http://127.0.0.1:${limits.port}", domain: d, descriptors: [${descriptor}]}}}`,
      });
      const setup = await startModels(t, { groups, owner: PRICED, more: [CATALOG, limit] });
      const charged = () => limits.seen.map(({ descriptors }) => Number(descriptors[0]?.hitsAddend));
      const expected: number[] = [];
      for (const cost of costs) {
        if (cost === VENDOR_COST) setup.choose = refuse(429, "shed");
        assert.equal((await ask(setup, { stream })).status, 200);
        // One question before each attempt, that of the pool and that of the vendor, and one charge after the last byte.
        expected.push(0, ...(cost === VENDOR_COST ? [0] : []), cost);
        await limits.asked(expected.length);
      }
      assert.equal((await ask(setup, { stream })).status, 429);
      assert.deepEqual(charged(), [...expected, 0]);
      const served = (cost: number) => costs.filter((each) => each === cost).length;
      assert.deepEqual(
        [setup.pool.seen.length, setup.vendor.seen.length, setup.picker.streams()],
        [served(POOL_COST), served(VENDOR_COST), costs.length],
      );
    });

test("traffic policies of a pool govern the attempts that go there, and leave the vendor's alone", async (t) => {
  const says = (traffic: string) => policy("own", { refs: POOL_REF, says: `traffic: {${traffic}}` });
  const marked =
    "headerModifiers: {request: {set: [{name: x-own, value: pool}]}, response: {set: [{name: x-mark, value: pool}]}}";
  const limited = "rateLimit: {local: [{tokens: 100, unit: Hours}]}";
  const setup = await startModels(t, { groups: "pool and vendor", more: [says(`${marked}, ${limited}`)] });
  const first = await ask(setup);
  assert.deepEqual([textOf(first), first.headers["x-mark"]], ["From the pool.", "pool"]);
  assert.equal(setup.pool.seen[0]?.headers["x-own"], "pool");
  setup.choose = refuse(429, "shed");
  const second = await ask(setup);
  assert.deepEqual([textOf(second), second.headers["x-mark"]], ["From the vendor.", undefined]);
  assert.equal(setup.vendor.seen[0]?.headers["x-own"], undefined);
  const rules = (await setup.gateway.proxy.explain("default/web"))[0]?.rules ?? [];
  assert.deepEqual(
    rules.map(({ backend, behind, policies }) => [backend, behind, policies.map(({ policy: name }) => name)]),
    [
      [undefined, undefined, ["retry"]],
      ["inferencepool/default/llama", "backend/default/chat", ["localRateLimit", "headerModifiers", "headerModifiers"]],
    ],
  );
});

test("tokens that a pool has spent count against its own limit, and those of the vendor do not", async (t) => {
  const own = policy("own", { refs: POOL_REF, says: "traffic: {rateLimit: {local: [{tokens: 30, unit: Hours}]}}" });
  const clock = { now: START };
  const setup = await startModels(t, { groups: "pool and vendor", more: [own], nowMs: () => clock.now });
  assert.equal(textOf(await ask(setup)), "From the pool.");
  setup.choose = refuse(503, "full");
  for (let round = 0; round < 3; round++) assert.equal(textOf(await ask(setup)), "From the vendor.");
  setup.choose = ({ subset }) => ({ to: subset.join(",") });
  clock.now += 2_000;
  // 27 of 30 tokens are gone: one more request passes, whatever the vendor has served.
  assert.equal(textOf(await ask(setup)), "From the pool.");
  // A request is charged a moment after its last byte has arrived.
  while ((await ask(setup)).status !== 429) assert.ok(setup.pool.seen.length < 10);
});

test("guards and ai policies see a request before the picker, which reads what the server will get", async (t) => {
  const ai = [
    "prompt: {prepend: [{role: SYSTEM, content: Be brief.}]}",
    "defaults: [{field: temperature, value: 0.5}]",
    "modelAliases: {claude-gpt: llama-8b}",
    "promptGuard: {request: [{regex: {action: Reject, matches: [forbidden]}}], response: [{regex: {action: Mask, matches: [pool]}}]}",
  ];
  const setup = await startModels(t, { policies: `ai: {${ai.join(", ")}}` });
  const rejected = await ask(setup, { messages: [{ role: "user", content: "a forbidden word" }] });
  assert.equal(rejected.status, 403);
  assert.equal(setup.picker.streams(), 0);
  const answer = await ask(setup);
  assert.match(textOf(answer), /^From the (?!pool)/);
  const [question] = setup.picker.asked;
  const seen = parseJson(question?.body ?? "") as Readonly<Record<string, unknown>>;
  assert.deepEqual([seen["model"], seen["temperature"]], ["llama-8b", 0.5]);
  assert.deepEqual(setup.pool.seen[0]?.body, seen);
  assert.ok(JSON.stringify(seen["messages"]).includes("Be brief."));
});

const SECRET = "of-the-model-server";

/** Locations of a credential, and what the model server gets there. */
const PLACES: readonly {
  readonly location: string;
  readonly at: (request: OpenAiServer["seen"][number]) => unknown;
}[] = [
  { location: "header: {name: X-Own-Key}", at: ({ headers }) => headers["x-own-key"] },
  { location: "cookie: {name: own}", at: ({ headers }) => headers.cookie },
  { location: "queryParameter: {name: own}", at: ({ query }) => query },
];

test("the picker sees no credential of the provider, wherever it is written", async (t) => {
  const key = `apiVersion: v1
kind: Secret
metadata: {name: openai}
stringData: {Authorization: ${OPENAI_KEY}}`;
  for (const { location, at } of PLACES) {
    // The server asks for its usual credential too.
    const usual =
      "credentials: [{location: {header: {name: Authorization, prefix: 'Bearer '}}, secretRef: {name: openai}}]";
    const says = `backend: {auth: {key: ${SECRET}, location: {${location}}, ${usual}}}`;
    const setup = await startModels(t, { more: [key, policy("own", { refs: POOL_REF, says })] });
    assert.equal((await ask(setup)).status, 200, location);
    const [request] = setup.pool.seen;
    assert.ok(request !== undefined && String(at(request)).includes(SECRET), location);
    const shown = JSON.stringify(setup.picker.asked);
    assert.ok(shown.includes("chat/completions") && !shown.includes(SECRET) && !shown.includes(OPENAI_KEY), location);
  }
});

test("fields of the extension about priorities reach picker and server unchanged, through a provider as well", async (t) => {
  const fields = {
    "x-gateway-inference-objective": "critical",
    "x-gateway-inference-fairness-id": "team-a",
    "x-request-priority": "1",
  };
  const setup = await startModels(t, {});
  assert.equal((await ask(setup, {}, fields)).status, 200);
  for (const [name, value] of Object.entries(fields)) {
    assert.equal(setup.picker.asked[0]?.headers[name], value);
    assert.equal(setup.pool.seen[0]?.headers[name], value);
  }
});

test("a virtual model fails over from the model of a pool to that of a vendor", async (t) => {
  const context = contextOf(t);
  const [pool, vendor] = [await startOpenAi(context), await startOpenAi(context)];
  [pool.answer, vendor.answer] = [{ text: "From the pool." }, { text: "From the vendor." }];
  let choose = ({ subset }: Question): PickerAnswer => ({ to: subset.join(",") });
  const picker = await startPicker(context, (question) => choose(question));
  const auth = `auth: {key: ${OPENAI_KEY}}`;
  const custom = (ref: string): string =>
    `provider: custom, custom: {formats: [{type: Completions}], backendRef: ${ref}}`;
  const parents = "parentRefs: [{name: gw}]";
  const gateway = await startGateway(
    context,
    documents(
      MODEL_GATEWAY,
      inferencePool({ ports: [pool.port], picker: picker.port }),
      service("vendor", vendor.port),
      gwModel("own", `${parents}, ${custom(POOL_REF)}, policies: {${auth}, ${HEALTH}}`),
      gwModel("bought", `${parents}, ${custom("{name: vendor, port: 80}")}, policies: {${auth}}`),
      virtual(
        "best",
        "failover: {targets: [{modelRef: {name: own}, priority: 0}, {modelRef: {name: bought}, priority: 1}]}",
      ),
      policy("again", {
        refs: "{group: gateway.networking.k8s.io, kind: Gateway, name: gw}",
        says: "traffic: {retry: {attempts: 1, codes: [429]}}",
      }),
    ),
  );
  assert.equal(textOf(await ask({ gateway }, { model: "best" })), "From the pool.");
  choose = refuse(429, "shed");
  assert.equal(textOf(await ask({ gateway }, { model: "best" })), "From the vendor.");
  assert.deepEqual([pool.seen.length, vendor.seen.length], [1, 1]);
});
