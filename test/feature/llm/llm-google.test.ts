/**
 * Gemini and Vertex AI behind the gateway: the official client of OpenAI, unchanged, in front of strict servers of
 * Google.
 */
import assert from "node:assert/strict";
import OpenAI from "openai";
import { call } from "../../support/clients/http.ts";
import { MEMBER, openaiClient, serveGemini, serveVertex, SINGLE, type Served } from "../../support/gateway/google.ts";
import { prove } from "../../support/proofs/prove.ts";
import { GEMINI_KEY, GOOGLE_TOKEN, PROJECT } from "../../support/servers/llm/google.ts";

const MODEL = "gemini-3-pro-preview";

type Params = Omit<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming, "model" | "stream">;

/** Asks plainly or in a stream, and returns the message that the official client makes of it. */
async function ask(
  client: OpenAI,
  params: Params,
  isStreamed: boolean,
  model = MODEL,
): Promise<OpenAI.Chat.ChatCompletion> {
  if (!isStreamed) return client.chat.completions.create({ ...params, model });
  const stream = client.chat.completions.stream({ ...params, model, stream_options: { include_usage: true } });
  return stream.finalChatCompletion();
}

const TOOLS: OpenAI.Chat.ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "Tells the weather of a city",
      parameters: {
        type: "object",
        properties: { city: { type: "string" }, days: { type: ["integer", "null"], exclusiveMinimum: 0 } },
        required: ["city"],
        additionalProperties: false,
      },
    },
  },
  { type: "function", function: { name: "get_time", parameters: { type: "object", properties: {} } } },
];
const HELLO: Params = { messages: [{ role: "user", content: "hello" }] };
const PIXEL = "iVBORw0KGgo=";

for (const isStreamed of [false, true]) {
  const how = isStreamed ? "streamed" : "plain";

  prove([], `a chat completions client gets text, thoughts and usage of Gemini (${how})`, async (context) => {
    const served = await serveGemini(context);
    served.google.answer = {
      parts: [{ text: "Hm.", thought: true }, { text: "Hello " }, { text: "there" }],
      usage: { promptTokenCount: 11, candidatesTokenCount: 7, thoughtsTokenCount: 5, totalTokenCount: 23 },
    };
    const params: Params = {
      messages: [{ role: "system", content: "Be kind" }, ...HELLO.messages],
      reasoning_effort: "low",
    };
    const answer = await ask(openaiClient(served), params, isStreamed);
    const [choice] = answer.choices;
    assert.equal(choice?.message.content, "Hello there");
    assert.equal(choice?.message && "reasoning_content" in choice.message && choice.message.reasoning_content, "Hm.");
    assert.equal(choice?.finish_reason, "stop");
    assert.equal(answer.usage?.completion_tokens, 12);
    assert.equal(answer.usage?.completion_tokens_details?.reasoning_tokens, 5);
    const [sent] = served.google.seen;
    assert.equal(
      sent?.url,
      `/v1beta/models/${MODEL}:${isStreamed ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    );
    assert.equal(sent?.headers["authorization"], undefined);
    assert.deepEqual(sent?.body["systemInstruction"], { parts: [{ text: "Be kind" }] });
    assert.deepEqual(sent?.body["generationConfig"], {
      thinkingConfig: { thinkingLevel: "low", includeThoughts: true },
    });
  });

  prove(
    [],
    `parallel calls and their signatures survive two turns of a chat completions client (${how})`,
    async (context) => {
      const served = await serveGemini(context);
      const client = openaiClient(served);
      served.google.answer = {
        parts: [
          { functionCall: { name: "get_weather", args: { city: "Rome" } }, thoughtSignature: "c2lnbmVk" },
          { functionCall: { name: "get_time", args: {} } },
        ],
      };
      const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: "user", content: "Weather and time?" }];
      const asked = await ask(client, { messages, tools: TOOLS, tool_choice: "required" }, isStreamed);
      const message = asked.choices[0]?.message;
      assert.equal(asked.choices[0]?.finish_reason, "tool_calls");
      const calls = message?.tool_calls?.filter((each) => each.type === "function") ?? [];
      assert.deepEqual(
        calls.map(({ function: made }) => [made.name, JSON.parse(made.arguments)]),
        [
          ["get_weather", { city: "Rome" }],
          ["get_time", {}],
        ],
      );
      served.google.answer = { parts: [{ text: "Sunny at noon" }] };
      messages.push({ role: "assistant", content: null, tool_calls: calls });
      for (const { id } of calls.toReversed()) messages.push({ role: "tool", tool_call_id: id, content: `of ${id}` });
      const summary = await ask(client, { messages, tools: TOOLS }, isStreamed);
      assert.equal(summary.choices[0]?.message.content, "Sunny at noon");
      const contents = served.google.seen[1]?.body["contents"] as { parts: Record<string, unknown>[] }[];
      assert.equal(contents[1]?.parts[0]?.["thoughtSignature"], "c2lnbmVk");
      assert.deepEqual(
        contents[2]?.parts.map(({ functionResponse }) => (functionResponse as { name: string }).name),
        ["get_weather", "get_time"],
      );
    },
  );

  prove([], `an image and a wanted structure reach Gemini (${how})`, async (context) => {
    const served = await serveGemini(context);
    served.google.answer = { parts: [{ text: '{"kind":"cat"}' }] };
    const schema = {
      type: "object",
      properties: { kind: { const: "cat" } },
      required: ["kind"],
      additionalProperties: false,
    };
    const answer = await ask(
      openaiClient(served),
      {
        messages: [
          { role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } }] },
        ],
        response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } },
      },
      isStreamed,
    );
    assert.equal(answer.choices[0]?.message.content, '{"kind":"cat"}');
    const [sent] = served.google.seen;
    assert.deepEqual(sent?.body["contents"], [
      { role: "user", parts: [{ inlineData: { mimeType: "image/png", data: PIXEL } }, { text: " " }] },
    ]);
    assert.deepEqual(sent?.body["generationConfig"], {
      responseMimeType: "application/json",
      responseSchema: { required: ["kind"], type: "object", properties: { kind: { enum: ["cat"], type: "string" } } },
    });
  });

  prove([], `length, filters and refused prompts of Gemini are told as such (${how})`, async (context) => {
    const served = await serveGemini(context);
    const client = openaiClient(served);
    const reasonOf = async (): Promise<unknown> =>
      (await client.chat.completions.create({ ...HELLO, model: MODEL })).choices[0]?.finish_reason;
    const streamedReasonOf = async (): Promise<unknown> => {
      let reason: unknown;
      for await (const { choices } of await client.chat.completions.create({ ...HELLO, model: MODEL, stream: true }))
        reason = choices[0]?.finish_reason ?? reason;
      return reason;
    };
    const ended = isStreamed ? streamedReasonOf : reasonOf;
    served.google.answer = { parts: [{ text: "He" }], finishReason: "MAX_TOKENS" };
    assert.equal(await ended(), "length");
    served.google.answer = { parts: [{ text: "He" }], finishReason: "SAFETY" };
    assert.equal(await ended(), "content_filter");
    served.google.answer = { blockReason: "PROHIBITED_CONTENT" };
    assert.equal(await ended(), "content_filter");
  });

  prove([], `errors of Gemini reach a chat completions client as its own (${how})`, async (context) => {
    const served = await serveGemini(context);
    const client = openaiClient(served);
    for (const [status, name, type] of ERRORS) {
      served.google.answer = { error: { status, name, message: `told by ${name}` } };
      const params = { ...HELLO, model: MODEL, stream: isStreamed };
      await assert.rejects(client.chat.completions.create(params), (error) => {
        assert.ok(error instanceof OpenAI.APIError);
        assert.deepEqual([error.status, error.type, error.code], [status, type, name]);
        return error.message.includes(`told by ${name}`);
      });
    }
  });
}

const ERRORS = [
  [400, "INVALID_ARGUMENT", "invalid_request_error"],
  [401, "UNAUTHENTICATED", "authentication_error"],
  [403, "PERMISSION_DENIED", "authentication_error"],
  [404, "NOT_FOUND", "not_found_error"],
  [429, "RESOURCE_EXHAUSTED", "rate_limit_error"],
  [500, "INTERNAL", "api_error"],
  [503, "UNAVAILABLE", "api_error"],
  [529, "UNAVAILABLE", "api_error"],
] as const;

const RESPONSE_TOOLS: OpenAI.Responses.FunctionTool[] = [
  { type: "function", name: "get_time", parameters: { type: "object", properties: {} }, strict: false },
];

prove([], "signatures of calls survive two turns of a responses client on the compatible path", async (context) => {
  const served = await serveGemini(context);
  const client = openaiClient(served);
  const call = { id: "t1", type: "function", function: { name: "get_time", arguments: "{}" } };
  const message = { role: "assistant", content: null, tool_calls: [{ ...call, extra_content: SIGNED }] };
  served.google.answer = {
    body: { id: "c", model: MODEL, choices: [{ index: 0, message, finish_reason: "tool_calls" }] },
  };
  const input: OpenAI.Responses.ResponseInputItem[] = [
    { role: "user", content: "And before?" },
    { type: "function_call", call_id: "of-another-vendor", name: "get_time", arguments: "{}" },
    { type: "function_call_output", call_id: "of-another-vendor", output: "noon" },
    { role: "user", content: "Time?" },
  ];
  const asked = await client.responses.create({ model: MODEL, input, tools: RESPONSE_TOOLS, store: false });
  const calls = asked.output.filter((item) => item.type === "function_call");
  input.push(...calls);
  for (const { call_id } of calls) input.push({ type: "function_call_output", call_id, output: "one" });
  await client.responses.create({ model: MODEL, input, tools: RESPONSE_TOOLS, store: false });
  const sent = served.google.seen[1];
  assert.equal(sent?.url, "/v1beta/openai/chat/completions");
  assert.equal(sent.headers["authorization"], `Bearer ${GEMINI_KEY}`);
  const messages = sent.body["messages"] as { tool_calls?: { id: string; extra_content?: unknown }[] }[];
  assert.deepEqual(
    messages.flatMap(({ tool_calls = [] }) => tool_calls).map(({ id, extra_content }) => [id, extra_content]),
    [
      ["of-another-vendor", { google: { thought_signature: "skip_thought_signature_validator" } }],
      ["t1", SIGNED],
    ],
  );
});

const SIGNED = { google: { thought_signature: "c2lnbmVk" } };

prove([], "a stream of Gemini that breaks off with an error ends with an error event", async (context) => {
  const served = await serveGemini(context);
  served.google.answer = {
    parts: [{ text: "Hel" }],
    breaks: { status: 503, name: "UNAVAILABLE", message: "The model is overloaded." },
  };
  const stream = await openaiClient(served).chat.completions.create({ ...HELLO, model: MODEL, stream: true });
  let text = "";
  await assert.rejects(async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  }, /overloaded/);
  assert.equal(text, "Hel");
});

/** Asks without a client of its own, so that an answer that is not 200 fails an assertion. */
async function chat({ gateway }: Served, model: string): Promise<string> {
  const { status, body } = await call(`${gateway.url()}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...HELLO, model }),
  });
  assert.equal(status, 200, body);
  const { choices = [] } = JSON.parse(body) as Partial<OpenAI.Chat.ChatCompletion>;
  return choices[0]?.message.content ?? "";
}

for (const place of [SINGLE, MEMBER])
  prove(
    `${place.prefix}.llmf.model`,
    `the configured model stands in the path, with its collection (${place.prefix})`,
    async (context) => {
      const served = await serveGemini(context, "llmf: {model: tunedModels/mine}", place);
      await chat(served, "of-the-client");
      assert.equal(served.google.seen[0]?.url, "/v1beta/tunedModels/mine:generateContent");
    },
  );

prove([], "a model name cannot steer the path", async (context) => {
  const served = await serveGemini(context);
  for (const model of ["../files", "a/b", "m?key=1", "m#x", "m%2fx", "models/", "models/..", "a b"])
    await assert.rejects(
      openaiClient(served).chat.completions.create({ ...HELLO, model }),
      OpenAI.BadRequestError,
      model,
    );
  assert.equal(served.google.seen.length, 0);
});

for (const place of [SINGLE, MEMBER]) {
  prove(
    [`${place.prefix}.llmg.projectId`, `${place.prefix}.llmg.region`],
    `Vertex AI is asked for Gemini below project and region (${place.prefix})`,
    async (context) => {
      const served = await serveVertex(context, "europe-west4", ", region: europe-west4", place);
      served.google.answer = { parts: [{ text: "Hello" }] };
      assert.equal(await chat(served, "google/gemini-2.5-flash"), "Hello");
      const [sent] = served.google.seen;
      const base = `/v1/projects/${PROJECT}/locations/europe-west4/publishers/google/models`;
      assert.equal(sent?.url, `${base}/gemini-2.5-flash:generateContent`);
      assert.equal(sent?.headers["authorization"], `Bearer ${GOOGLE_TOKEN}`);
    },
  );

  prove(
    `${place.prefix}.llmg.model`,
    `Vertex AI is asked for Claude in its own form (${place.prefix})`,
    async (context) => {
      const served = await serveVertex(context, "global", ", model: anthropic/claude-sonnet-4-5-20250929", place);
      served.google.answer = { body: CLAUDE_ANSWER };
      assert.equal(await chat(served, "of-the-client"), "Hello");
      const base = `/v1/projects/${PROJECT}/locations/global/publishers/anthropic/models`;
      assert.equal(served.google.seen[0]?.url, `${base}/claude-sonnet-4-5@20250929:rawPredict`);
    },
  );
}

const CLAUDE_ANSWER = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-4-5",
  content: [{ type: "text", text: "Hello" }],
  stop_reason: "end_turn",
  usage: { input_tokens: 3, output_tokens: 2 },
};

prove([], "Vertex AI is asked for every other model at its one path", async (context) => {
  const served = await serveVertex(context, "global");
  served.google.answer = {
    body: {
      id: "c",
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
    },
  };
  for (const model of ["meta/llama-4", "claude-x/../../y", "google/gemini-embedding-001"]) {
    assert.equal(await chat(served, model), "Hi");
    const sent = served.google.seen.at(-1);
    assert.equal(sent?.url, `/v1/projects/${PROJECT}/locations/global/endpoints/openapi/chat/completions`);
    assert.equal(sent?.body["model"], model);
  }
});

prove([], "Vertex AI predicts embeddings, packed as the official client asks for them", async (context) => {
  const served = await serveVertex(context, "eu", ", region: eu");
  const client = openaiClient(served);
  const input = ["one", "two"];
  const { data, usage } = await client.embeddings.create({ model: "google/text-embedding-005", input, dimensions: 2 });
  assert.deepEqual(
    data.map(({ embedding }) => [...embedding]),
    [
      [0.25, -0.5],
      [0.25, -0.5],
    ],
  );
  assert.deepEqual(usage, { prompt_tokens: 8, total_tokens: 8 });
  const [sent] = served.google.seen;
  assert.equal(sent?.url, `/v1/projects/${PROJECT}/locations/eu/publishers/google/models/text-embedding-005:predict`);
  assert.deepEqual(sent.body, {
    instances: input.map((content) => ({ content, task_type: "RETRIEVAL_QUERY" })),
    parameters: { outputDimensionality: 2 },
  });
  const plain = await client.embeddings.create({ model: "gemini-embedding-001", input: "x", encoding_format: "float" });
  assert.deepEqual(plain.data[0]?.embedding, [0.25, -0.5]);
  served.google.answer = { error: { status: 429, name: "RESOURCE_EXHAUSTED", message: "Quota" } };
  await assert.rejects(client.embeddings.create({ model: "m", input: "x" }), OpenAI.RateLimitError);
  for (const wrong of [[[1, 2]], [], [1]] as const)
    await assert.rejects(
      client.embeddings.create({ model: "m", input: wrong as unknown as string }),
      OpenAI.BadRequestError,
    );
  await assert.rejects(client.embeddings.create({ model: "../../x", input: "x" }), OpenAI.BadRequestError);
});

prove([], "the Gemini API embeds at its compatible path", async (context) => {
  const served = await serveGemini(context);
  const { data } = await openaiClient(served).embeddings.create({ model: "gemini-embedding-001", input: "x" });
  assert.deepEqual([...(data[0]?.embedding ?? [])], [0.25, -0.5]);
  assert.equal(served.google.seen[0]?.headers["authorization"], `Bearer ${GEMINI_KEY}`);
});

prove([], "Vertex AI ranks documents of a rerank client", async (context) => {
  const served = await serveVertex(context, "global");
  const rank = (body: object): ReturnType<typeof call> =>
    call(`${served.gateway.url()}/v2/rerank`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "semantic-ranker-default-004", query: "q", ...body }),
    });
  const documents = ["a", { text: "ccc" }, "bb"];
  const { status, body } = await rank({ documents, top_n: 2, return_documents: true });
  assert.deepEqual(
    [status, JSON.parse(body)],
    [
      200,
      {
        model: "semantic-ranker-default-004",
        results: [
          { index: 1, relevance_score: 1, document: { text: "ccc" } },
          { index: 2, relevance_score: 0.5, document: { text: "bb" } },
        ],
      },
    ],
  );
  for (const wrong of [{ documents: "a" }, { documents: [1] }, { documents, query: 1 }, { documents, top_n: -1 }])
    assert.equal((await rank(wrong)).status, 400);
});
