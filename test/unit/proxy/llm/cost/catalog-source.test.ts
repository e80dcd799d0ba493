/** The strict parser of model catalogs: each fault is named by its path. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "../../../../../src/lib/errors.ts";
import { parseCatalogSource } from "../../../../../src/proxy/llm/cost/catalog-source.ts";

function withModel(model: string): string {
  return `{"providers": {"openai": {"models": {"gpt-4.1": ${model}}}}}`;
}

const MODEL = 'providers.openai.models["gpt-4.1"]';

/** Text of a source, and the beginning of the error. */
const FAULTS: readonly (readonly [text: string, error: string])[] = [
  ["", "the text is not JSON; write one JSON object"],
  ["[]", "the text is not a JSON object"],
  ["null", "the text is not a JSON object"],
  ["[".repeat(100_000), "the text is nested too deep"],
  ["{}", "providers: missing"],
  ['{"provider": {}}', "provider: unknown key; did you mean `providers`?"],
  ['{"providers": []}', "providers: not a JSON object"],
  ['{"providers": {"openai": {"gpt-4o": {}}}}', 'providers.openai["gpt-4o"]: unknown key'],
  ['{"providers": {"openai": {}}}', "providers.openai.models: missing"],
  ['{"providers": {"": {"models": {}}}}', 'providers[""]: not a name'],
  ['{"providers": {"__proto__": {"models": 1}}}', "providers.__proto__.models: not a JSON object"],
  [withModel("1"), `${MODEL}: not a JSON object`],
  [withModel('{"rate": {}}'), `${MODEL}.rate: unknown key; did you mean \`rates\`?`],
  [withModel('{"rates": {"inputs": "1"}}'), `${MODEL}.rates.inputs: unknown key; did you mean \`input\`?`],
  [withModel('{"rates": {"cache_read": "1"}}'), `${MODEL}.rates.cache_read: unknown key`],
  [withModel('{"rates": {"input": 1}}'), `${MODEL}.rates.input: not a decimal text`],
  [withModel('{"rates": {"input": "-1"}}'), `${MODEL}.rates.input: not a decimal text`],
  [withModel('{"rates": {"input": "1e3"}}'), `${MODEL}.rates.input: not a decimal text`],
  [withModel('{"rates": {"input": "1.2345678"}}'), `${MODEL}.rates.input: not a decimal text`],
  [withModel('{"rates": {"input": "1."}}'), `${MODEL}.rates.input: not a decimal text`],
  [withModel('{"rates": {"input": " 1"}}'), `${MODEL}.rates.input: not a decimal text`],
  [withModel('{"rates": {"input": "NaN"}}'), `${MODEL}.rates.input: not a decimal text`],
  [withModel('{"rates": {"input": "1234567890"}}'), `${MODEL}.rates.input: not a decimal text`],
  [withModel('{"rates": {"input": null}}'), `${MODEL}.rates.input: not a decimal text`],
  [withModel('{"tiers": {}}'), `${MODEL}.tiers: not a list`],
  [withModel('{"tiers": [{"rates": {}}]}'), `${MODEL}.tiers[0].contextOver: not a number of tokens`],
  [
    withModel('{"tiers": [{"contextOver": 1.5, "rates": {}}]}'),
    `${MODEL}.tiers[0].contextOver: not a number of tokens`,
  ],
  [withModel('{"tiers": [{"contextOver": 1}]}'), `${MODEL}.tiers[0].rates: missing`],
  [
    withModel('{"tiers": [{"contextOver": 5, "rates": {}}, {"contextOver": 5, "rates": {}}]}'),
    `${MODEL}.tiers[1].contextOver: not above the tier before`,
  ],
  [withModel('{"tiers": [{"contextOver": 1, "rates": {"inpt": "1"}}]}'), `${MODEL}.tiers[0].rates.inpt: unknown key`],
  [withModel('{"tags": "alt"}'), `${MODEL}.tags: not a list`],
  [withModel('{"tags": ["alt", 1]}'), `${MODEL}.tags[1]: not a tag`],
  [withModel(`{"tags": ${JSON.stringify(Array(33).fill("x"))}}`), `${MODEL}.tags: longer than 32 elements`],
  ['{"providers": {"a": {"models": {"X": {}, "x": {}}}}}', "providers.a.models.x: the model is listed twice"],
  [`{"providers": {"a": {"models": {"${"m".repeat(257)}": {}}}}}`, `providers.a.models.${"m".repeat(64)}: not a name`],
  [`"${"x".repeat(9 * 1024 * 1024)}"`, "the text is longer than"],
];

for (const [text, error] of FAULTS)
  test(`refuses ${text.slice(0, 80)}`, () => {
    assert.throws(
      () => parseCatalogSource(text),
      (thrown) => thrown instanceof ConfigError && thrown.message.startsWith(error),
    );
  });

test("bounds the number of models of a source", () => {
  const models = Object.fromEntries(Array.from({ length: 50_001 }, (_, at) => [`m${at}`, {}]));
  assert.throws(() => parseCatalogSource(JSON.stringify({ providers: { a: { models } } })), /more than 50000 models/);
});

test("reads rates as millionths, names in lower case, and what is left out as empty", () => {
  const source = parseCatalogSource(
    '{"providers": {"OpenAI": {"models": {"A": {"rates": {"input": "0.15", "output": "60"}}, "b": {}}}}}',
  );
  assert.deepEqual(
    [...(source.get("openai") ?? [])],
    [
      ["a", { rates: { input: 150_000n, output: 60_000_000n }, tiers: undefined, tags: [] }],
      ["b", { rates: {}, tiers: undefined, tags: [] }],
    ],
  );
});
