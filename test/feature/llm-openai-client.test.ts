/** The official client, unchanged, through the LLM handler to a provider of each vendor's protocol. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import OpenAI from "openai";
import { startPracticeProvider, type PracticeProvider } from "../../examples/practice-provider/practice-provider.ts";
import { aiBackend, startFront, type Front } from "../support/llm-harness.ts";

const TOOLS: OpenAI.Chat.ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "Tells the weather of a city",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  },
];

for (const key of ["llma", "llme"] as const) {
  describe(`the official client on provider ${key}`, () => {
    let provider: PracticeProvider;
    let front: Front;
    let client: OpenAI;

    before(async () => {
      provider = await startPracticeProvider({ port: 0, keys: ["secret-1"] });
      front = await startFront(
        aiBackend({ key, identity: key, host: "127.0.0.1", port: provider.port, credential: "secret-1" }),
      );
      client = new OpenAI({ apiKey: "of-the-client", baseURL: `${front.url}/v1`, maxRetries: 0 });
    });
    after(async () => {
      await front.stop();
      await provider.stop();
    });

    test("gets a plain answer with usage", async () => {
      const answer = await client.chat.completions.create({
        model: "practice",
        messages: [
          { role: "system", content: "Be kind" },
          { role: "user", content: "hello there" },
        ],
      });
      assert.equal(answer.choices[0]?.message.content, "You said: hello there");
      assert.equal(answer.choices[0]?.finish_reason, "stop");
      assert.equal(answer.usage?.prompt_tokens, 4);
      assert.equal(answer.usage?.completion_tokens, 4);
      assert.equal(front.exchanges.at(-1)?.llm["totalTokens"], 8);
    });

    test("gets a stream whose pieces make up the answer, and its usage", async () => {
      const stream = await client.chat.completions.create({
        model: "practice",
        messages: [{ role: "user", content: "one two three" }],
        stream: true,
      });
      let text = "";
      let total = 0;
      const finished: string[] = [];
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        total = chunk.usage?.total_tokens ?? total;
        if (chunk.choices[0]?.finish_reason) finished.push(chunk.choices[0].finish_reason);
      }
      assert.equal(text, "You said: one two three");
      assert.deepEqual(finished, ["stop"]);
      assert.equal(total, 8);
      assert.equal(front.exchanges.at(-1)?.llm["totalTokens"], 8);
    });

    for (const stream of [false, true])
      test(`calls a tool and summarises its result, ${stream ? "streamed" : "plain"}`, async () => {
        const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
          { role: "user", content: "What is the weather in Rome" },
        ];
        const message = stream
          ? (await client.chat.completions.stream({ model: "practice", messages, tools: TOOLS }).finalChatCompletion())
              .choices[0]?.message
          : (await client.chat.completions.create({ model: "practice", messages, tools: TOOLS })).choices[0]?.message;
        const call = message?.tool_calls?.[0];
        assert.ok(message && call?.type === "function");
        assert.equal(call.function.name, "get_weather");
        assert.deepEqual(JSON.parse(call.function.arguments), { city: "Rome" });
        const { role, content, tool_calls } = message;
        messages.push({ role, content, ...(tool_calls === undefined ? {} : { tool_calls }) });
        messages.push({ role: "tool", tool_call_id: call.id, content: "sunny" });
        const summary = await client.chat.completions.create({ model: "practice", messages, tools: TOOLS });
        assert.equal(summary.choices[0]?.message.content, "The tool says: sunny");
      });

    test("sees the provider's refusal of a bad body as its own kind of error", async () => {
      const call = client.chat.completions.create({ model: "practice", messages: [] });
      await assert.rejects(call, (error) => error instanceof OpenAI.BadRequestError && /messages/.test(error.message));
    });
  });
}

test("a wrong key is refused in the client's error shape, by either vendor", async () => {
  const provider = await startPracticeProvider({ port: 0, keys: ["right"] });
  for (const key of ["llma", "llme"]) {
    const front = await startFront(aiBackend({ key, host: "127.0.0.1", port: provider.port, credential: "wrong" }));
    const client = new OpenAI({ apiKey: "x", baseURL: `${front.url}/v1`, maxRetries: 0 });
    const call = client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "hi" }] });
    await assert.rejects(
      call,
      (error) => error instanceof OpenAI.AuthenticationError && error.type === "authentication_error",
    );
    await front.stop();
  }
  assert.equal(provider.served(), 0);
  await provider.stop();
});
