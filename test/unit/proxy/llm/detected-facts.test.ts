/** Facts in answers whose format is not known: every known shape, payloads below `response`, and any JSON. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { detectFacts, learnDetected } from "../../../../src/proxy/llm/operations/detected-facts.ts";
import type { JsonObject } from "../../../../src/proxy/llm/shared/json.ts";
import type { Facts } from "../../../../src/proxy/llm/shared/usage.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

const COMPLETION = { model: "m", usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } };
const MESSAGE = {
  type: "message",
  model: "m",
  usage: { input_tokens: 2, cache_read_input_tokens: 3, output_tokens: 2 },
};
const RESPONSE = { object: "response", model: "m", usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7 } };
const GEMINI = { modelVersion: "m", candidates: [], usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2 } };
const CONVERSE = { usage: { inputTokens: 5, outputTokens: 2, totalTokens: 7 } };

test("usage is found in the answer of every format, and below `response`", () => {
  for (const answer of [
    COMPLETION,
    MESSAGE,
    RESPONSE,
    GEMINI,
    CONVERSE,
    { response: GEMINI },
    { response: RESPONSE },
  ]) {
    const { usage } = detectFacts(answer as JsonObject);
    assert.deepEqual([usage?.inputTokens, usage?.outputTokens], [5, 2], JSON.stringify(answer));
  }
});

test("usage is found in the events of every format", () => {
  for (const events of [
    [{ model: "m", choices: [] }, COMPLETION],
    [
      { type: "message_start", message: { model: "m", usage: { input_tokens: 5, output_tokens: 1 } } },
      { type: "message_delta", delta: {}, usage: { output_tokens: 2 } },
    ],
    [
      { type: "response.created", response: { model: "m", usage: null } },
      { type: "response.completed", response: RESPONSE },
    ],
    [GEMINI],
    [{ response: GEMINI }],
    [{ type: "transcript.text.done", usage: RESPONSE.usage }],
    [CONVERSE],
  ]) {
    const facts: Facts = {};
    for (const event of events) learnDetected(event as JsonObject, facts);
    assert.deepEqual([facts.usage?.inputTokens, facts.usage?.outputTokens], [5, 2], JSON.stringify(events));
  }
});

test("any JSON has facts or none", () => {
  const members = fc.constantFrom(
    "type",
    "model",
    "usage",
    "response",
    "usageMetadata",
    "input_tokens",
    "inputTokens",
    "message",
  );
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: "small" },
      fc.jsonValue({ maxDepth: 1 }),
      fc.dictionary(members, tie("any"), { maxKeys: 5 }),
    ),
  })).any;
  assertProperty(
    fc.property(fc.dictionary(members, value), (given) => {
      const answer = JSON.parse(JSON.stringify(given)) as JsonObject;
      detectFacts(answer);
      learnDetected(answer, {});
    }),
  );
});
