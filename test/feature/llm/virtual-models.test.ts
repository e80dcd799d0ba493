/** Virtual GwModels through real sockets: by weight, by condition, by health, and by the choice of a service. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gatewayPolicy } from "../../support/gateway/gateway.ts";
import { gwModel, model, readRefusal, serveModels, service, virtual } from "../../support/gateway/models.ts";
import { parseJson } from "../../support/clients/http.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

/** The body of the newest request. */
function newestBody(seen: readonly { readonly body: string }[]): string {
  return seen.at(-1)?.body ?? "";
}

const SPEC = "GwModel spec";

prove(
  [`${SPEC}.virtualModel.weighted.targets[].weight`, `${SPEC}.virtualModel.weighted.targets[].model`],
  "weights share the requests, and a target is asked for by its name",
  async (context) => {
    const { asked } = await serveModels(
      context,
      model("any", { more: `match: {model: "*"}` }),
      model("other", { to: "two" }),
      virtual(
        "mix",
        "weighted: {targets: [{modelRef: {name: any}, model: chosen, weight: 1}, {modelRef: {name: other}, weight: 1000000}]}",
      ),
      virtual("named", "weighted: {targets: [{modelRef: {name: any}, model: chosen}]}"),
    );
    const answers = await Promise.all(Array.from({ length: 20 }, () => asked("mix")));
    assert.deepEqual([...new Set(answers)], ["two other"]);
    assert.equal(await asked("named"), "one chosen");
  },
);

prove(
  [
    `${SPEC}.virtualModel.conditional.targets[].when`,
    `${SPEC}.virtualModel.conditional.targets[].modelRef.name`,
    `${SPEC}.virtualModel.conditional.targets[].model`,
  ],
  "the first condition that is true chooses, over the request and its body",
  async (context) => {
    const conditions = `[{modelRef: {name: any}, model: big, when: "size(llmRequest.messages) > 1"}, {modelRef: {name: other}, when: "request.headers['x-tier'] == 'gold'"}]`;
    const { ask, asked } = await serveModels(
      context,
      model("any", { more: `match: {model: "*"}` }),
      model("other", { to: "two" }),
      virtual("auto", `conditional: {targets: ${conditions}}`),
    );
    const messages = [1, 2].map((text) => ({ role: "user", content: String(text) }));
    assert.equal(await asked("auto", { body: { messages } }), "one big");
    assert.equal(await asked("auto", { headers: { "x-tier": "gold" } }), "two other");
    assert.equal(await readRefusal(ask("auto")), "400 virtual_model_no_matching_target");
  },
);

const EVICT = `policies: {health: {unhealthyCondition: "response.code >= 500", eviction: {duration: 1h}}}`;

prove(
  [
    `${SPEC}.virtualModel.failover.targets[].priority`,
    `${SPEC}.virtualModel.failover.targets[].modelRef.name`,
    `${SPEC}.policies.health.unhealthyCondition`,
  ],
  "a failover asks the lowest priority first, and the next one once its models are evicted",
  async (context) => {
    const { gateway, two, ask, asked } = await serveModels(
      context,
      // The echo answers a path that begins with /status/503 with that status.
      gwModel(
        "first",
        `parentRefs: [{name: gw}], provider: custom, custom: {formats: [{type: Completions, path: /status/503}], backendRef: {name: one, port: 80}}, ${EVICT}`,
      ),
      model("spare", { to: "two" }),
      virtual(
        "safe",
        "failover: {targets: [{modelRef: {name: spare}, priority: 1}, {modelRef: {name: first}, priority: 0}]}",
      ),
    );
    assert.equal((await ask("safe")).status, 503);
    assert.equal(two.seen.length, 0);
    assert.equal(await asked("safe"), "two spare");
    assert.ok(gateway);
  },
);

prove(
  ["consecutiveFailures", "healthThreshold"].map((name) => `${SPEC}.policies.health.eviction.${name}`),
  "a model stays in its failover until it has failed as often as its settings say",
  async (context) => {
    const failing = (name: string, eviction: string): string =>
      gwModel(
        name,
        `parentRefs: [{name: gw}], provider: custom, custom: {formats: [{type: Completions, path: /status/503}], backendRef: {name: one, port: 80}}, policies: {health: {unhealthyCondition: "response.code >= 500", eviction: {duration: 1h, ${eviction}}}}`,
      );
    const safe = (name: string): string =>
      virtual(
        `${name}-safe`,
        `failover: {targets: [{modelRef: {name: ${name}}, priority: 0}, {modelRef: {name: spare}, priority: 1}]}`,
      );
    const { ask, asked } = await serveModels(
      context,
      failing("in-a-row", "consecutiveFailures: 2"),
      failing("by-score", "healthThreshold: 50"),
      model("spare", { to: "two" }),
      safe("in-a-row"),
      safe("by-score"),
    );
    for (const [name, most] of [
      ["in-a-row-safe", 2],
      ["by-score-safe", 3],
    ] as const) {
      for (let failures = 0; failures < most; failures++) assert.equal((await ask(name)).status, 503, name);
      assert.equal(await asked(name), "two spare", name);
    }
  },
);

async function startChooser(context: ProofContext): Promise<{ readonly port: number; readonly bodies: string[] }> {
  const bodies: string[] = [];
  const chooser = await startUpstream((request, response) => {
    const { "x-ask": asked = "" } = request.headers;
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      bodies.push(body);
      response.writeHead(asked === "fails" ? 500 : 200, { "x-temperature": "0.5" });
      response.end(asked === "garbage" ? "[]" : JSON.stringify({ pick: `${String(asked)}${request.url}` }));
    });
  });
  context.after(() => chooser.close());
  return { port: chooser.port, bodies };
}

const CALLOUT = `${SPEC}.virtualModel.callout`;

prove(
  [
    `${CALLOUT}.backendRef.name`,
    `${CALLOUT}.headers`,
    `${CALLOUT}.body`,
    `${CALLOUT}.transformation`,
    `${CALLOUT}.fallback.modelRef.name`,
    `${CALLOUT}.fallback.model`,
  ],
  "a service chooses the model and sets fields of the body, and a fallback stands in for it",
  async (context) => {
    const chooser = await startChooser(context);
    const transformation = `transformation: {model: "callout.body.pick", temperature: "double(callout.headers['x-temperature'])", user: "null"}`;
    const callout = `backendRef: {name: chooser, port: 80}, headers: {x-ask: "llmRequest.ask", ":path": "'/' + llmRequest.tier"}, body: "{'asked': llmRequest.ask}", ${transformation}`;
    const { ask, asked, one } = await serveModels(
      context,
      service("chooser", chooser.port),
      model("any", { more: `match: {model: "gpt*"}, visibility: Internal` }),
      model("spare", { more: `match: {model: "s*"}`, to: "two" }),
      virtual("auto", `callout: {${callout}}`),
      virtual("safe", `callout: {${callout}, fallback: {modelRef: {name: spare}, model: safest}}`),
    );
    const answer = await ask("auto", { body: { ask: "gpt", tier: "4", user: "me", temperature: 2 } });
    assert.equal(answer.status, 200, answer.body);
    const { model: name, temperature, user } = parseJson(newestBody(one.seen)) as Record<string, unknown>;
    assert.deepEqual([name, temperature, user], ["gpt/4", 0.5, undefined]);
    assert.deepEqual(chooser.bodies, ['{"asked":"gpt"}']);
    for (const kind of ["fails", "garbage", "unknown"])
      assert.equal(await asked("safe", { body: { ask: kind, tier: "4" } }), "two safest");
    assert.equal(await readRefusal(ask("auto", { body: { ask: "fails", tier: "4" } })), "503 model_selection_failed");
    assert.equal(await readRefusal(ask("auto", { body: { ask: "garbage", tier: "4" } })), "503 model_selection_failed");
    const unknown = ask("auto", { body: { ask: "unknown", tier: "4" } });
    assert.equal(await readRefusal(unknown), "404 virtual_model_target_not_found");
  },
);

prove(
  [`${CALLOUT}.cache.key[]`, `${CALLOUT}.cache.ttl`, `${CALLOUT}.url`],
  "an answer of the service is kept by its key, and the fields are computed anew from it",
  async (context) => {
    const chooser = await startChooser(context);
    const cache = `cache: {key: ["request.headers['x-user']"], ttl: 1h}`;
    const { asked } = await serveModels(
      context,
      model("any", { more: `match: {model: "gpt*"}` }),
      virtual(
        "auto",
        `callout: {url: "http://127.0.0.1:${chooser.port}/pick", headers: {x-ask: "llmRequest.ask"}, transformation: {model: "callout.body.pick + llmRequest.tail"}, ${cache}}`,
      ),
    );
    const as = (user: string, tail: string) => ({ headers: { "x-user": user }, body: { ask: `gpt-${user}`, tail } });
    assert.equal(await asked("auto", as("a", "1")), "one gpt-a/pick1");
    assert.equal(await asked("auto", as("a", "2")), "one gpt-a/pick2");
    assert.equal(await asked("auto", as("b", "1")), "one gpt-b/pick1");
    assert.equal(chooser.bodies.length, 2);
  },
);

test("a retry of a failover goes on with the next priority", async (t) => {
  const { asked } = await serveModels(
    contextOf(t),
    gwModel(
      "first",
      `parentRefs: [{name: gw}], provider: custom, custom: {formats: [{type: Completions, path: /status/503}], backendRef: {name: one, port: 80}}, ${EVICT}`,
    ),
    model("spare", { to: "two" }),
    virtual(
      "safe",
      "failover: {targets: [{modelRef: {name: first}, priority: 0}, {modelRef: {name: spare}, model: named, priority: 1}]}",
    ),
    gatewayPolicy("again", "  traffic: {retry: {attempts: 1, codes: [503]}}"),
  );
  assert.equal(await asked("safe"), "two named");
});
