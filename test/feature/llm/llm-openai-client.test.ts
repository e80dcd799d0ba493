/** The official client, unchanged, through the whole gateway to a provider of each vendor's protocol. */
import assert from "node:assert/strict";
import OpenAI from "openai";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import { PROVIDER_KEY, mockBackend, startMockProvider } from "../../support/gateway/mock-provider.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

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

type Key = "llma" | "llme";

/** A client of a gateway with one provider, which knows one key only. @param secret what the gateway presents */
async function connect(context: ProofContext, key: Key, secret = PROVIDER_KEY): Promise<OpenAI> {
  const provider = await startMockProvider(context);
  const backend = mockBackend(provider.port, key, secret);
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai")));
  return new OpenAI({ apiKey: "of-the-client", baseURL: `${gateway.url()}/v1`, maxRetries: 0 });
}

for (const key of ["llma", "llme"] as const) {
  prove([], `the official client gets a plain answer with usage (${key})`, async (context) => {
    const client = await connect(context, key);
    const answer = await client.chat.completions.create({
      model: "mock",
      messages: [
        { role: "system", content: "Be kind" },
        { role: "user", content: "hello there" },
      ],
    });
    assert.equal(answer.choices[0]?.message.content, "You said: hello there");
    assert.equal(answer.choices[0]?.finish_reason, "stop");
    assert.equal(answer.usage?.prompt_tokens, 4);
    assert.equal(answer.usage?.completion_tokens, 4);
  });

  prove(
    [],
    `the official client gets a stream whose pieces make up the answer, and its usage (${key})`,
    async (context) => {
      const client = await connect(context, key);
      const stream = await client.chat.completions.create({
        model: "mock",
        messages: [{ role: "user", content: "one two three" }],
        stream: true,
        stream_options: { include_usage: true },
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
    },
  );

  for (const stream of [false, true])
    prove(
      [],
      `the official client calls a tool and has its result summarised, ${stream ? "streamed" : "plain"} (${key})`,
      async (context) => {
        const client = await connect(context, key);
        const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
          { role: "user", content: "What is the weather in Rome" },
        ];
        const answer = stream
          ? await client.chat.completions.stream({ model: "mock", messages, tools: TOOLS }).finalChatCompletion()
          : await client.chat.completions.create({ model: "mock", messages, tools: TOOLS });
        const message = answer.choices[0]?.message;
        const call = message?.tool_calls?.[0];
        assert.ok(message && call?.type === "function");
        assert.equal(call.function.name, "get_weather");
        assert.deepEqual(JSON.parse(call.function.arguments), { city: "Rome" });
        const { role, content, tool_calls } = message;
        messages.push({ role, content, ...(tool_calls === undefined ? {} : { tool_calls }) });
        messages.push({ role: "tool", tool_call_id: call.id, content: "sunny" });
        const summary = await client.chat.completions.create({ model: "mock", messages, tools: TOOLS });
        assert.equal(summary.choices[0]?.message.content, "The tool says: sunny");
      },
    );

  prove(
    [],
    `the official client sees a provider's refusal of a bad body as its own kind of error (${key})`,
    async (context) => {
      const client = await connect(context, key);
      const call = client.chat.completions.create({ model: "mock", messages: [] });
      await assert.rejects(call, (error) => error instanceof OpenAI.BadRequestError && /messages/.test(error.message));
    },
  );

  prove(
    [],
    `the official client sees a key that the provider refuses as its own kind of error (${key})`,
    async (context) => {
      const client = await connect(context, key, "wrong");
      const call = client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "hi" }] });
      await assert.rejects(
        call,
        (error) => error instanceof OpenAI.AuthenticationError && error.type === "authentication_error",
      );
    },
  );
}
