/** Dollars for the usage that providers report, from the counts of each format to the sum, computed by hand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { doubleOf, isDouble } from "../../../../../src/cel/values.ts";
import { Catalog } from "../../../../../src/proxy/llm/cost/catalog.ts";
import { parseCatalogSource } from "../../../../../src/proxy/llm/cost/catalog-source.ts";
import { priceUsage } from "../../../../../src/proxy/llm/cost/price.ts";
import * as completions from "../../../../../src/proxy/llm/formats/completions/usage.ts";
import * as converse from "../../../../../src/proxy/llm/formats/converse/usage.ts";
import * as gemini from "../../../../../src/proxy/llm/formats/gemini/usage.ts";
import * as messages from "../../../../../src/proxy/llm/formats/messages/usage.ts";
import * as responses from "../../../../../src/proxy/llm/formats/responses/usage.ts";
import type { JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";
import type { Facts } from "../../../../../src/proxy/llm/shared/usage.ts";

/** Each rate is another power of two, so that no two kinds can stand in for each other. */
const RATES = {
  input: "1",
  output: "2",
  cacheRead: "4",
  cacheWrite: "8",
  reasoning: "16",
  inputAudio: "32",
  outputAudio: "64",
};
const CATALOG = new Catalog([
  parseCatalogSource(JSON.stringify({ providers: { p: { models: { m: { rates: RATES } } } } })),
]);

interface Row {
  readonly name: string;
  learn(answer: JsonObject, facts: Facts): boolean;
  /** What the provider reports, event by event. */
  readonly reported: readonly JsonObject[];
  /** Millionths of a dollar by kind; a kind that is left out costs nothing. */
  readonly parts: Readonly<Partial<Record<keyof typeof RATES, number>>>;
}

const ROWS: readonly Row[] = [
  {
    name: "chat completions count every kind within prompt and completion",
    learn: completions.learnFacts,
    reported: [
      {
        usage: {
          prompt_tokens: 1000,
          completion_tokens: 500,
          prompt_tokens_details: { cached_tokens: 300, cache_write_tokens: 100, audio_tokens: 50, image_tokens: 20 },
          completion_tokens_details: { reasoning_tokens: 200, audio_tokens: 30, image_tokens: 5 },
        },
      },
    ],
    // Pictures have no rate of their own: 1,000 − 300 − 100 − 50 and 500 − 200 − 30 are left.
    parts: {
      input: 550,
      cacheRead: 1200,
      cacheWrite: 800,
      inputAudio: 1600,
      output: 540,
      reasoning: 3200,
      outputAudio: 1920,
    },
  },
  {
    name: "chat completions that report a sum alone",
    learn: completions.learnFacts,
    reported: [{ usage: { total_tokens: 70 } }],
    parts: { input: 70, output: 140 },
  },
  {
    name: "responses count every kind within input and output",
    learn: responses.learnEvent,
    reported: [
      { type: "response.created", response: { usage: null } },
      {
        type: "response.completed",
        response: {
          usage: {
            input_tokens: 1000,
            output_tokens: 500,
            input_tokens_details: { cached_tokens: 300, cache_write_tokens: 100, image_tokens: 20 },
            output_tokens_details: { reasoning_tokens: 200 },
          },
        },
      },
    ],
    parts: { input: 600, cacheRead: 1200, cacheWrite: 800, output: 600, reasoning: 3200 },
  },
  {
    name: "realtime sessions split text and audio in both directions",
    learn: responses.learnEvent,
    reported: [
      {
        response: {
          usage: {
            input_tokens: 130,
            output_tokens: 40,
            input_token_details: { text_tokens: 30, audio_tokens: 90, cached_tokens: 10 },
            output_token_details: { text_tokens: 10, audio_tokens: 30 },
          },
        },
      },
    ],
    parts: { input: 30, cacheRead: 40, inputAudio: 2880, output: 20, outputAudio: 1920 },
  },
  {
    name: "messages count what a cache read and wrote beside the input, over the events of a stream",
    learn: messages.learnFromEvent,
    reported: [
      {
        type: "message_start",
        message: {
          usage: { input_tokens: 60, cache_read_input_tokens: 300, cache_creation_input_tokens: 100, output_tokens: 1 },
        },
      },
      { type: "message_delta", usage: { output_tokens: 50 } },
    ],
    parts: { input: 60, cacheRead: 1200, cacheWrite: 800, output: 100 },
  },
  {
    name: "converse counts what a cache read and wrote beside the input",
    learn: converse.learnFacts,
    reported: [
      {
        usage: {
          inputTokens: 60,
          outputTokens: 50,
          totalTokens: 510,
          cacheReadInputTokens: 300,
          cacheWriteInputTokens: 100,
        },
      },
    ],
    parts: { input: 60, cacheRead: 1200, cacheWrite: 800, output: 100 },
  },
  {
    name: "gemini counts tools beside the prompt and thoughts beside the answer",
    learn: gemini.learnFacts,
    reported: [
      { usageMetadata: { promptTokenCount: 400, candidatesTokenCount: 1 } },
      {
        usageMetadata: {
          promptTokenCount: 400,
          toolUsePromptTokenCount: 25,
          cachedContentTokenCount: 100,
          candidatesTokenCount: 80,
          thoughtsTokenCount: 60,
          totalTokenCount: 565,
          promptTokensDetails: [
            { modality: "TEXT", tokenCount: 350 },
            { modality: "AUDIO", tokenCount: 50 },
          ],
          candidatesTokensDetails: [{ modality: "AUDIO", tokenCount: 30 }],
        },
      },
    ],
    // 400 + 25 − 100 − 50, and 80 + 60 − 60 − 30.
    parts: { input: 275, cacheRead: 400, inputAudio: 1600, output: 100, reasoning: 960, outputAudio: 1920 },
  },
];

for (const { name, learn, reported, parts } of ROWS)
  test(`cost: ${name}`, () => {
    const facts: Facts = {};
    for (const answer of reported) learn(answer, facts);
    assert.ok(facts.usage);
    const { cost } = priceUsage(CATALOG, {
      provider: "p",
      requestModel: "m",
      responseModel: undefined,
      usage: facts.usage,
    });
    const millionths = (part: string): number => {
      const dollars = cost?.[part];
      assert.ok(isDouble(dollars), part);
      return Math.round(doubleOf(dollars) * 1e6);
    };
    const kinds = Object.keys(RATES) as (keyof typeof RATES)[];
    assert.deepEqual(
      Object.fromEntries(kinds.map((kind) => [kind, millionths(kind)])),
      Object.fromEntries(kinds.map((kind) => [kind, parts[kind] ?? 0])),
    );
    assert.equal(
      millionths("total"),
      Object.values(parts).reduce((sum, part) => sum + part, 0),
    );
  });
