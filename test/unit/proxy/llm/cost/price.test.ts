/** Prices of every kind of usage against dollars that were computed by hand, and the look-up in a large catalog. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { doubleOf, isDouble } from "../../../../../src/cel/values.ts";
import { Catalog } from "../../../../../src/proxy/llm/cost/catalog.ts";
import { parseCatalogSource } from "../../../../../src/proxy/llm/cost/catalog-source.ts";
import { priceUsage, type LookupStatus } from "../../../../../src/proxy/llm/cost/price.ts";
import type { Usage } from "../../../../../src/proxy/llm/shared/usage.ts";

const ALL = {
  input: "2.5",
  output: "10",
  cacheRead: "1.25",
  cacheWrite: "3.125",
  reasoning: "12",
  inputAudio: "40",
  outputAudio: "80",
};

const CATALOG = catalogOf({
  openai: {
    all: { rates: ALL },
    plain: { rates: { input: "2.5", output: "10" } },
    tiered: {
      rates: { input: "1.25", output: "10", cacheRead: "0.31" },
      tiers: [
        { contextOver: 1000, rates: { input: "2.5", output: "15" } },
        { contextOver: 200000, rates: { input: "5" } },
      ],
    },
    smallest: { rates: { input: "0.000001", output: "0" } },
    "half-priced": { rates: { input: "1" } },
    unpriced: { tags: ["completions"] },
  },
});

function catalogOf(providers: Readonly<Record<string, object>>, ...later: Readonly<Record<string, object>>[]): Catalog {
  return new Catalog(
    [providers, ...later].map((each) => {
      const named = Object.entries(each).map(([name, models]) => [name, { models }]);
      return parseCatalogSource(JSON.stringify({ providers: Object.fromEntries(named) }));
    }),
  );
}

/** Kind of usage, model, usage, and the parts of the cost in dollars. */
const ROWS: readonly (readonly [kind: string, model: string, Usage, Readonly<Record<string, number>>])[] = [
  ["input and output", "all", { inputTokens: 1_000_000, outputTokens: 100_000 }, { input: 2.5, output: 1, total: 3.5 }],
  ["one token", "all", { inputTokens: 1, outputTokens: 0 }, { input: 0.0000025, output: 0, total: 0.0000025 }],
  [
    "cache reads: 600 of 1,000 at half the price",
    "all",
    { inputTokens: 1000, outputTokens: 10, cachedInputTokens: 600 },
    { input: 0.001, cacheRead: 0.00075, output: 0.0001, total: 0.00185 },
  ],
  [
    "cache writes and reads",
    "all",
    { inputTokens: 3000, outputTokens: 0, cachedInputTokens: 1000, cacheCreationInputTokens: 800 },
    { input: 0.003, cacheRead: 0.00125, cacheWrite: 0.0025, total: 0.00675 },
  ],
  [
    "reasoning: 300 of 500 tokens of output",
    "all",
    { inputTokens: 0, outputTokens: 500, reasoningTokens: 300 },
    { output: 0.002, reasoning: 0.0036, total: 0.0056 },
  ],
  [
    "audio in and out",
    "all",
    { inputTokens: 1000, outputTokens: 1000, inputAudioTokens: 250, outputAudioTokens: 500 },
    { input: 0.001875, inputAudio: 0.01, output: 0.005, outputAudio: 0.04, total: 0.056875 },
  ],
  [
    "all kinds at once",
    "all",
    {
      inputTokens: 10_000,
      outputTokens: 5000,
      cachedInputTokens: 4000,
      cacheCreationInputTokens: 2000,
      inputAudioTokens: 1000,
      reasoningTokens: 1500,
      outputAudioTokens: 500,
    },
    {
      input: 0.0075,
      cacheRead: 0.005,
      cacheWrite: 0.00625,
      inputAudio: 0.04,
      output: 0.03,
      reasoning: 0.018,
      outputAudio: 0.04,
      total: 0.14675,
    },
  ],
  [
    "kinds without a rate of their own cost what input and output cost",
    "plain",
    {
      inputTokens: 1000,
      outputTokens: 1000,
      cachedInputTokens: 100,
      cacheCreationInputTokens: 100,
      inputAudioTokens: 100,
      reasoningTokens: 100,
      outputAudioTokens: 100,
    },
    {
      input: 0.00175,
      cacheRead: 0.00025,
      cacheWrite: 0.00025,
      inputAudio: 0.00025,
      output: 0.008,
      reasoning: 0.001,
      outputAudio: 0.001,
      total: 0.0125,
    },
  ],
  [
    "parts that a provider reports larger than the whole are cut",
    "all",
    { inputTokens: 100, outputTokens: 10, cachedInputTokens: 500, reasoningTokens: 40 },
    { input: 0, cacheRead: 0.000125, output: 0, reasoning: 0.00012, total: 0.000245 },
  ],
  ["a prompt at the border of a tier", "tiered", { inputTokens: 1000, outputTokens: 1000 }, { total: 0.01125 }],
  [
    "a prompt above the border",
    "tiered",
    { inputTokens: 1001, outputTokens: 1000 },
    { input: 0.0025025, total: 0.0175025 },
  ],
  [
    "the highest tier overlays the base rates, not the tier before",
    "tiered",
    { inputTokens: 200_001, outputTokens: 1000, cachedInputTokens: 200_000 },
    { input: 0.000005, cacheRead: 0.062, output: 0.01, total: 0.072005 },
  ],
  ["the smallest rate", "smallest", { inputTokens: 1, outputTokens: 7 }, { input: 1e-12, output: 0, total: 1e-12 }],
  [
    "sums that doubles cannot add",
    "smallest",
    { inputTokens: 9_007_199_254_740_991, outputTokens: 0 },
    { total: Number("9007.199254740991") },
  ],
  ["a missing rate that nothing needs", "half-priced", { inputTokens: 3, outputTokens: 0 }, { total: 0.000003 }],
];

for (const [kind, requestModel, usage, expected] of ROWS)
  test(`cost of ${kind}`, () => {
    const price = priceUsage(CATALOG, { provider: "openai", requestModel, responseModel: undefined, usage });
    assert.equal(price.status, "Exact");
    for (const [part, dollars] of Object.entries(expected)) {
      const value = price.cost?.[part];
      assert.ok(isDouble(value), `${part} is a double for expressions`);
      assert.equal(doubleOf(value), dollars, part);
    }
  });

test("a model is found by the answer's name, then by the request's, in any case and without its version", () => {
  const catalog = catalogOf({
    OpenAI: {
      "GPT-4o": { rates: { input: "1" } },
      "o3-20250416": { rates: { input: "2" } },
      o3: { rates: { input: "3" } },
    },
    bedrock: { "anthropic.claude-x": { rates: { input: "4" } }, "nova-v1:0": { rates: { input: "5" } } },
  });
  const rows: readonly (readonly [string, string, string | undefined, number | LookupStatus])[] = [
    ["openai", "gpt-4o", undefined, 1],
    ["openai", "x", "GPT-4O", 1],
    ["openai", "gpt-4o", "gpt-4o-2024-08-06", 1],
    ["openai", "gpt-4o-20240806", undefined, 1],
    ["openai", "gpt-4o@20240806", undefined, 1],
    ["openai", "o3-20250416", undefined, 2],
    ["openai", "o3-20250417", undefined, 3],
    ["openai", "o3", "o3-20250416", 2],
    ["bedrock", "anthropic.claude-x-20240620-v1:0", undefined, 4],
    ["bedrock", "anthropic.claude-x-v12:3", undefined, 4],
    ["bedrock", "nova-v1:0", undefined, 5],
    ["openai", "gpt-4o-2024", undefined, "Missing"],
    ["openai", "o3-mini", "o3-mini-20250101", "Missing"],
    ["bedrock", "gpt-4o", undefined, "Missing"],
    ["openai", "constructor", "__proto__", "Missing"],
    ["__proto__", "gpt-4o", undefined, "Missing"],
  ];
  const usage = { inputTokens: 1_000_000, outputTokens: 0 };
  for (const [provider, requestModel, responseModel, expected] of rows) {
    const { status, cost } = priceUsage(catalog, { provider, requestModel, responseModel, usage });
    const total = cost?.["total"];
    assert.equal(isDouble(total) ? doubleOf(total) : status, expected, `${provider} ${requestModel} ${responseModel}`);
  }
});

test("a model without the rates that its usage needs is unpriced, and has no cost", () => {
  for (const [requestModel, rates] of [
    ["unpriced", {}],
    ["half-priced", { input: 1 }],
  ] as const) {
    const usage = { inputTokens: 1, outputTokens: 1 };
    const price = priceUsage(CATALOG, { provider: "openai", requestModel, responseModel: undefined, usage });
    assert.deepEqual([price.status, price.cost], ["Unpriced", undefined]);
    assert.deepEqual(Object.keys(price.costRates ?? {}).includes("input"), "input" in rates);
  }
});

test("of several sources a later rate wins, tags add up, and tiers replace", () => {
  const catalog = catalogOf(
    {
      p: { m: { rates: { input: "1", output: "2" }, tiers: [{ contextOver: 5, rates: { input: "7" } }], tags: ["a"] } },
    },
    { p: { M: { rates: { output: "3" }, tags: ["b"] }, other: { rates: { input: "1" } } } },
    { p: { m: { tiers: [{ contextOver: 9, rates: { input: "8" } }] } } },
  );
  const model = catalog.find("p", ["m"]);
  assert.deepEqual([...(model?.tags ?? [])], ["a", "b"]);
  assert.deepEqual(model?.rates, { input: 1_000_000n, output: 3_000_000n });
  assert.deepEqual(model?.tiers, [{ contextOver: 9, rates: { input: 8_000_000n } }]);
});

test("a look-up in a catalog of 5,000 models takes less than 2 µs", () => {
  const models = Object.fromEntries(
    Array.from({ length: 5000 }, (_, at) => [`vendor.model-${at}-instruct`, { rates: { input: "1", output: "2" } }]),
  );
  const catalog = catalogOf({ bedrock: models });
  const names = Array.from({ length: 1000 }, (_, at) => `Vendor.Model-${at * 5}-Instruct-20250101-v1:0`);
  const measure = (): number => {
    const start = performance.now();
    for (let round = 0; round < 10; round++)
      for (const name of names) if (catalog.find("bedrock", [name]) === undefined) throw new Error(name);
    return ((performance.now() - start) * 1000) / (10 * names.length);
  };
  // The best of several rounds, since other processes may take the cores meanwhile.
  const microseconds = Math.min(...Array.from({ length: 20 }, measure));
  assert.ok(microseconds < 2, `${microseconds} µs`);
});
