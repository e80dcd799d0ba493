/** Counting tokens: the encoding by model, the counts, and what happens when a count cannot be made. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { countTokens } from "../../../../src/proxy/llm/tokens/count-tokens.ts";
import { encodingOf } from "../../../../src/proxy/llm/tokens/encoding.ts";
import { TokenCounter } from "../../../../src/proxy/llm/tokens/token-counter.ts";

test("the name of the model chooses the encoding", () => {
  const names = {
    o200k:
      "gpt-4o gpt-4o-mini gpt-4.1-mini gpt-5 openai/gpt-5.4 gpt-oss-120b o1 o3-mini gemini-2.5-pro llama unheard-of",
    cl100k:
      "gpt-4 gpt-4-turbo GPT-4-0613 gpt-3.5-turbo openai/gpt-4 text-embedding-3-small claude-sonnet-4-5 anthropic.claude-v2",
  };
  for (const [encoding, models] of Object.entries(names))
    for (const model of models.split(" ")) assert.equal(encodingOf(model), encoding, model);
});

test("texts have the tokens that OpenAI publishes for them", async () => {
  const count = (encoding: "o200k" | "cl100k", ...texts: readonly string[]) => countTokens(texts, encoding);
  assert.equal(await count("cl100k", "antidisestablishmentarianism"), 6);
  assert.equal(await count("cl100k", "2 + 2 = 4", "お誕生日おめでとう"), 7 + 9);
  assert.equal(await count("o200k", "2 + 2 = 4", "お誕生日おめでとう"), 7 + 8);
  assert.ok((await count("o200k", "<|endoftext|>")) > 1, "the name of a special token is text");
  assert.ok((await count("o200k", "\ud800")) > 0);
  assert.equal(await count("o200k", ""), 0);
});

test("a text of one word, and one beyond the bound, are counted in pieces", async () => {
  const words = "some words of a text ";
  const repeated = await countTokens([words.repeat(10) + "a".repeat(1024)], "o200k");
  // Eight letters a are one token.
  assert.ok(Math.abs(repeated - (10 * 5 + 1024 / 8)) < 4, `${repeated}`);
  const long = words.repeat(60_000);
  const tokens = await countTokens([long], "o200k");
  assert.ok(tokens > 60_000 * 5 && tokens < 60_000 * 5.3, `${tokens}`);
});

/** The longest delay that a timer takes. */
const MAX_TIMER_MS = 2 ** 31 - 1;

test("counts run on a thread, which ends when it is not used", async () => {
  // On a busy machine the thread takes longer to start than a request would wait.
  const counter = new TokenCounter({ maxIdleMs: 1, maxWaitMs: MAX_TIMER_MS });
  assert.deepEqual(
    await Promise.all([counter.count(["2 + 2 = 4"], "gpt-5"), counter.count(["a", "b"], "gpt-4")]),
    [7, 2],
  );
  while (counter.isRunning) await wait(1);
  assert.equal(await counter.count(["2 + 2 = 4"], "gpt-5"), 7);
});

test("what cannot wait is estimated", async () => {
  const counter = new TokenCounter({ maxWaiting: 0 });
  assert.equal(await counter.count(["123456789", "ä"], "gpt-5"), 3 + 1);
  assert.equal(counter.isRunning, false);
});
