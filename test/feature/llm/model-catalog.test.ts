/** The model catalog of a Gateway through real sockets: prices in reports, budgets in dollars, hot reload, and tags. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { RateLimitResponse_Code as Code } from "../../../generated/proto/envoy/service/ratelimit/v3/rls_pb.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import {
  documents,
  gatewayOf,
  gatewayPolicy,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { createMeasured, sumOf } from "../../support/gateway/measured.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { startRateServer } from "../../support/servers/rate-server.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const SOURCE = "GwParameters spec.modelCatalog.sources[].configMap";
const PRICED = gatewayOf(
  ["{name: http, port: 8080, protocol: HTTP}"],
  "  infrastructure: {parametersRef: {group: gwproxy.dev, kind: GwParameters, name: prices}}",
);

/** @param sources flow YAML of each `configMap` */
function parameters(...sources: readonly string[]): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwParameters
metadata: {name: prices}
spec: {modelCatalog: {sources: [${sources.map((source) => `{configMap: ${source}}`).join(", ")}]}}
`;
}

function configMap(name: string, data: Readonly<Record<string, string>>): string {
  return `
apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}}
data: ${JSON.stringify(data)}
`;
}

function catalog(models: Readonly<Record<string, object>>, identity = "openai"): string {
  return JSON.stringify({ providers: { [identity]: { models } } });
}

function backend(provider: string, port: number): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec: {ai: {provider: {${provider}, host: 127.0.0.1, port: ${port}}}, policies: {auth: {key: k}}}
`;
}

/** 1,000 tokens in, of which 400 come from a cache; 200 out, of which 50 are reasoning. */
const USAGE = {
  prompt_tokens: 1000,
  completion_tokens: 200,
  prompt_tokens_details: { cached_tokens: 400 },
  completion_tokens_details: { reasoning_tokens: 50 },
};
/** Costs 600 × 2.5 + 400 × 1.25 + 150 × 10 + 50 × 12 = 4,100 millionths of a dollar. */
const RATES = { input: "2.5", output: "10", cacheRead: "1.25", reasoning: "12" };
const DOLLARS = 0.0041;

/** Answers chat completions of the model "big-20250101", streamed or not, and always with the same usage. */
async function startModel(context: ProofContext): Promise<{ readonly port: number; readonly served: () => number }> {
  let served = 0;
  const upstream = await startUpstream((request, response) => {
    let asked = "";
    request.on("data", (chunk: Buffer) => (asked += chunk.toString()));
    request.on("end", () => {
      served++;
      // It has a full name of its own for the model that it serves under other names.
      const model = /"model":"(unknown|tagged)"/.exec(asked)?.[1] ?? "big-20250101";
      const isStream = asked.includes('"stream":true');
      response.setHeader("content-type", isStream ? "text/event-stream" : "application/json");
      if (isStream) {
        const events = [
          { model, choices: [{ index: 0, delta: { content: "Hi" } }] },
          { choices: [], usage: USAGE },
        ];
        response.end([...events.map((event) => `data: ${JSON.stringify(event)}\n\n`), "data: [DONE]\n\n"].join(""));
      } else {
        const choices = [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }];
        response.end(JSON.stringify({ object: "chat.completion", model, choices, usage: USAGE }));
      }
    });
  });
  context.after(() => upstream.close());
  return { port: upstream.port, served: () => served };
}

function chat(gateway: TestGateway, more: object = {}, headers: Record<string, string> = {}): Promise<Answer> {
  return call(`${gateway.url()}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "alias", messages: [{ role: "user", content: "Hi" }], ...more }),
  });
}

prove(
  [`${SOURCE}.name`, `${SOURCE}.key`],
  "the sources of a Gateway price requests: in the log, in expressions and in metrics, streamed or not",
  async (context) => {
    const model = await startModel(context);
    const lines = keepLines(context);
    const measured = createMeasured();
    const { input: _later, ...early } = RATES;
    const added = ["cost.cacheRead", "cost.reasoning", "costRates.input", "costRates.outputAudio"];
    const add = added.map((name) => `{name: ${name}, expression: llm.${name}}`).join(", ");
    const gateway = await startGateway(
      context,
      documents(
        PRICED,
        parameters("{name: base}", "{name: overlay, key: own.json}"),
        configMap("base", { "catalog.json": catalog({ big: { rates: { ...early, input: "99" } } }) }),
        configMap("overlay", {
          "catalog.json": catalog({ big: { rates: { input: "77" } } }),
          "own.json": catalog({ Big: { rates: { input: "2.5" } } }, "OpenAI"),
        }),
        backend("llma: {}", model.port),
        route("ai", "ai"),
        gatewayPolicy("log", `  frontend: {accessLog: {attributes: {add: [${add}]}}}`),
      ),
      { telemetry: { accessLog: lines.accessLog, metrics: measured.metrics } },
    );
    for (const stream of [false, true]) {
      assert.equal((await chat(gateway, { stream })).status, 200);
      const fields = await lines.nextFields();
      assert.equal(fields["gwp.ai.usage.cost.total"], String(DOLLARS));
      assert.deepEqual(
        added.map((name) => fields[name]),
        [0.0005, 0.0006, 2.5, 10],
      );
    }
    const spent = await measured.counted("gen_ai_client_cost_usd_total", 2 * DOLLARS);
    assert.equal(sumOf(spent), 2 * DOLLARS);
    assert.equal(sumOf(measured.read("cost_catalog_lookups_total", { status: "Exact" })), 2);
  },
);

prove(
  "GwParameters spec.modelCatalog.sources[].configMap.name",
  "an edit serves at once; a source that breaks or goes keeps its last good text, and the Gateway names it",
  async (context) => {
    const model = await startModel(context);
    const lines = keepLines(context);
    const manifests = (...objects: readonly string[]): string =>
      documents(PRICED, parameters("{name: prices}"), backend("llma: {}", model.port), route("ai", "ai"), ...objects);
    const priced = (input: string): string =>
      configMap("prices", { "catalog.json": catalog({ big: { rates: { ...RATES, input } } }) });
    const gateway = await startGateway(context, manifests(priced("2.5")), { telemetry: lines });
    const cost = async (): Promise<unknown> => {
      assert.equal((await chat(gateway)).status, 200);
      return (await lines.nextFields())["gwp.ai.usage.cost.total"];
    };
    assert.equal(await cost(), "0.0041");
    await gateway.change(manifests(priced("5")));
    assert.equal(await cost(), "0.0056");
    await gateway.change(manifests(configMap("prices", { "catalog.json": catalog({ big: { rate: {} } }) })));
    assert.equal(await cost(), "0.0056");
    await gateway.change(manifests());
    assert.equal(await cost(), "0.0056");
    const [missing] = gateway.translator.diagnostics().filter(({ code }) => code === "catalog_unreadable");
    assert.match(missing?.message ?? "", /model catalog prices\/catalog.json: ConfigMap default\/prices not found/);
    assert.equal(missing?.object.kind, "Gateway");
    await gateway.change(manifests(priced("2.5")));
    assert.equal(await cost(), "0.0041");
    // A source that the parameters no longer name is forgotten.
    await gateway.change(manifests(priced("2.5")).replace("name: prices}}", "name: other}}"));
    assert.equal(await cost(), undefined);
  },
);

prove([], "the catalog of the page prices a request", async (context) => {
  const model = await startModel(context);
  const lines = keepLines(context);
  const page = readFileSync(new URL("../../../docs/model-catalog.md", import.meta.url), "utf8");
  const [, manifests = ""] = /```yaml\n(.*?)```/su.exec(page) ?? [];
  const gateway = await startGateway(
    context,
    documents(manifests, backend("llma: {}", model.port), route("ai", "ai")),
    { telemetry: lines },
  );
  assert.deepEqual(gateway.translator.diagnostics(), []);
  assert.equal((await chat(gateway, { model: "gpt-4.1" })).status, 200);
  // 600 × 2 + 400 × 0.5 + 200 × 6.4 millionths of a dollar.
  assert.equal((await lines.nextFields())["gwp.ai.usage.cost.total"], "0.00268");
});

prove(
  "GwPolicy spec.traffic.rateLimit.global.descriptors[].cost",
  "a limit with a cost in dollars is a budget of each team, which replicas share and streams do not get around",
  async (context) => {
    const model = await startModel(context);
    const spent = new Map<string, number>();
    const BUDGET = 10_000;
    const server = await startRateServer(context, ({ descriptors }) => {
      const states = descriptors.map(({ entries, hitsAddend = 1n }) => {
        const team = entries.map(({ value }) => value).join();
        const used = (spent.get(team) ?? 0) + Number(hitsAddend);
        spent.set(team, used);
        return used >= BUDGET;
      });
      return { overallCode: states.includes(true) ? Code.OVER_LIMIT : Code.OK };
    });
    const descriptor = `{entries: [{name: team, expression: 'request.headers["x-team"]'}], unit: Tokens, cost: "uint(llm.cost.total * 1000000.0)"}`;
    const limit = `{global: {url: "http://127.0.0.1:${server.port}", domain: d, descriptors: [${descriptor}]}}`;
    const manifests = documents(
      PRICED,
      parameters("{name: prices}"),
      configMap("prices", { "catalog.json": catalog({ big: { rates: RATES } }) }),
      backend("llma: {}", model.port),
      route("ai", "ai"),
      routePolicy("limit", "ai", `  traffic: {rateLimit: ${limit}}`),
    );
    const replicas = [await startGateway(context, manifests), await startGateway(context, manifests)];
    let questions = 0;
    const ask = async (at: number, team: string, more: object = {}): Promise<number> => {
      const { status } = await chat(replicas[at] as TestGateway, more, { "x-team": team });
      // One question before the request is sent, and one charge after it.
      await server.asked((questions += status === 200 ? 2 : 1));
      return status;
    };
    assert.deepEqual(
      [await ask(0, "red"), await ask(1, "red", { stream: true }), await ask(0, "blue"), await ask(1, "red")],
      [200, 200, 200, 200],
    );
    assert.deepEqual([await ask(0, "red"), await ask(1, "red", { stream: true })], [429, 429]);
    assert.equal(await ask(1, "blue", { stream: true }), 200);
    assert.deepEqual(Object.fromEntries(spent), { red: 12_300, blue: 8200 });
    assert.equal(model.served(), 5);
  },
);

for (const [moment, event] of [
  ["before the provider answers", undefined],
  ["in the middle of a stream", { model: "big", choices: [{ index: 0, delta: { content: "Hi there" } }] }],
] as const)
  prove([], `a client that leaves ${moment} is charged what the request has cost by then`, async (context) => {
    const asked = Promise.withResolvers<void>();
    const upstream = await startUpstream((_request, response) => {
      if (event !== undefined) {
        response.setHeader("content-type", "text/event-stream");
        response.write(`data: ${JSON.stringify(event)}\n\n`);
      }
      asked.resolve();
    });
    context.after(() => upstream.close());
    const server = await startRateServer(context);
    const descriptor = `{entries: [{name: all, expression: "'1'"}], unit: Tokens, cost: "uint(llm.cost.total * 1000000000.0)"}`;
    const limit = `{global: {url: "http://127.0.0.1:${server.port}", domain: d, descriptors: [${descriptor}]}}`;
    const gateway = await startGateway(
      context,
      documents(
        PRICED,
        parameters("{name: prices}"),
        configMap("prices", { "catalog.json": catalog({ big: { rates: RATES } }) }),
        backend("llma: {}", upstream.port),
        route("ai", "ai"),
        routePolicy("limit", "ai", `  traffic: {rateLimit: ${limit}}`),
      ),
    );
    const body = JSON.stringify({ model: "big", stream: true, messages: [{ role: "user", content: "12345678" }] });
    const headers = { "content-type": "application/json" };
    const client = request(`${gateway.url()}/v1/chat/completions`, { method: "POST", headers });
    client.on("error", () => undefined).end(body);
    await asked.promise;
    if (event !== undefined) {
      const [answer] = (await once(client, "response")) as [IncomingMessage];
      await once(answer, "data");
    }
    client.destroy();
    await server.asked(2);
    // Eight bytes are two tokens of 2,500 billionths of a dollar; each token of the answer costs 10,000.
    const hits = server.seen[1]?.descriptors[0]?.hitsAddend;
    assert.equal(hits, event === undefined ? 5000n : 25_000n);
  });

/** Settings of the provider, tags of the model in the catalog, and the path that the provider is asked at. */
const TAGGED: readonly (readonly [provider: string, identity: string, tags: readonly string[], path: string])[] = [
  ["llmb: {}", "copilot", [], "/chat/completions"],
  ["llmb: {}", "copilot", ["messages"], "/v1/messages"],
  ["llmb: {}", "copilot", ["openai_completions"], "/chat/completions"],
  ["llmh: {region: us-east-1}", "aws.bedrock", [], "/model/gpt-4o/converse"],
  ["llmh: {region: us-east-1}", "aws.bedrock", ["alt", "completions"], "/v1/chat/completions"],
  ["llmh: {region: us-east-1}", "aws.bedrock", ["alt", "runtime"], "/model/gpt-4o/converse"],
  ["llmh: {region: us-east-1, endpointPreference: AltPreferred}", "aws.bedrock", ["runtime"], "/model/gpt-4o/converse"],
];

for (const [provider, identity, tags, path] of TAGGED)
  prove([], `tags ${tags.join(" ")} lead a model of ${provider} to ${path}`, async (context) => {
    const echo = await startEcho(context);
    const gateway = await startGateway(
      context,
      documents(
        PRICED,
        parameters("{name: prices}"),
        configMap("prices", { "catalog.json": catalog({ "gpt-4o": { tags } }, identity) }),
        backend(provider, echo.port),
        route("ai", "ai"),
      ),
    );
    await chat(gateway, { model: "gpt-4o" });
    assert.equal(echo.seen.at(-1)?.url, path);
  });

/** Preference of the provider, tags of a Claude model in the catalog, and the path at which its tokens are counted. */
const COUNTED: readonly (readonly [preference: string, tags: readonly string[], path: string])[] = [
  ["RuntimePreferred", [], "/model/anthropic.claude-9/count-tokens"],
  ["RuntimePreferred", ["alt"], "/anthropic/v1/messages/count_tokens"],
  ["AltPreferred", [], "/anthropic/v1/messages/count_tokens"],
  ["AltPreferred", ["runtime"], "/model/anthropic.claude-9/count-tokens"],
  ["RuntimeOnly", ["alt"], "/model/anthropic.claude-9/count-tokens"],
  ["AltOnly", ["runtime"], "/anthropic/v1/messages/count_tokens"],
];

prove([], "the tokens of a prompt are counted on the surface that offers the model", async (context) => {
  for (const [preference, tags, path] of COUNTED) {
    const echo = await startEcho(context);
    const gateway = await startGateway(
      context,
      documents(
        PRICED,
        parameters("{name: prices}"),
        configMap("prices", { "catalog.json": catalog({ "anthropic.claude-9": { tags } }, "aws.bedrock") }),
        backend(`llmh: {region: us-east-1, endpointPreference: ${preference}}`, echo.port),
        route("ai", "ai"),
      ),
    );
    await call(`${gateway.url()}/v1/messages/count_tokens`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "anthropic.claude-9", messages: [{ role: "user", content: "hi" }] }),
    });
    assert.equal(echo.seen.at(-1)?.url, path, `${preference} ${tags.join()}`);
  }
});

prove([], "a model without a price is served, and a limit in dollars is not charged for it", async (context) => {
  const model = await startModel(context);
  const server = await startRateServer(context, () => ({ overallCode: Code.OK }));
  const descriptor = `{entries: [{name: team, expression: '"red"'}], unit: Tokens, cost: "uint(llm.cost.total * 1000000.0)"}`;
  const gateway = await startGateway(
    context,
    documents(
      PRICED,
      parameters("{name: prices}"),
      configMap("prices", { "catalog.json": catalog({ big: { rates: RATES }, tagged: { tags: ["runtime"] } }) }),
      backend("llma: {}", model.port),
      route("ai", "ai"),
      routePolicy(
        "limit",
        "ai",
        `  traffic: {rateLimit: {global: {url: "http://127.0.0.1:${server.port}", domain: d, descriptors: [${descriptor}]}}}`,
      ),
    ),
  );
  for (const name of ["unknown", "tagged", "big"])
    assert.equal((await chat(gateway, { model: name })).status, 200, name);
  await server.asked(4);
  const hits = server.seen.map(({ descriptors }) => Number(descriptors[0]?.hitsAddend ?? 0n));
  assert.deepEqual(
    hits.filter((charged) => charged > 0),
    [4100],
    "one question for each request, and one charge",
  );
  assert.equal(hits.length, 4);
});
