/** The official client of Google, unchanged, in front of its own vendor and of others. */
import assert from "node:assert/strict";
import {
  ApiError,
  FunctionCallingConfigMode,
  type Content,
  type GenerateContentResponse,
  type GoogleGenAI,
} from "@google/genai";
import { call, parseJson } from "../../support/clients/http.ts";
import { documents, GATEWAY, route, routePolicy, startGateway } from "../../support/gateway/gateway.ts";
import { googleClient, serveGemini, serveVertex } from "../../support/gateway/google.ts";
import { mockBackend, startMockProvider } from "../../support/gateway/mock-provider.ts";
import { prove } from "../../support/proofs/prove.ts";
import { startScripted } from "../../support/servers/scripted-server.ts";
import { GEMINI_KEY, GOOGLE_TOKEN } from "../../support/servers/llm/google.ts";

const MODEL = "gemini-3-pro-preview";

/** Texts and calls that a client of Google has seen in an answer or in a whole stream. */
interface Seen {
  text: string;
  thoughts: string;
  finishReason: string | undefined;
  totalTokens: number;
  readonly contents: Content[];
}

type GenerateParams = Omit<Parameters<GoogleGenAI["models"]["generateContent"]>[0], "model">;

async function generate(
  client: GoogleGenAI,
  params: GenerateParams,
  isStreamed: boolean,
  model = MODEL,
): Promise<Seen> {
  const seen: Seen = { text: "", thoughts: "", finishReason: undefined, totalTokens: 0, contents: [] };
  if (!isStreamed) addAnswer(seen, await client.models.generateContent({ ...params, model }));
  else
    for await (const chunk of await client.models.generateContentStream({ ...params, model })) addAnswer(seen, chunk);
  return seen;
}

function addAnswer(seen: Seen, { candidates, usageMetadata }: GenerateContentResponse): void {
  const [candidate] = candidates ?? [];
  if (candidate?.content !== undefined) seen.contents.push(candidate.content);
  for (const { text = "", thought } of candidate?.content?.parts ?? [])
    if (thought === true) seen.thoughts += text;
    else seen.text += text;
  seen.finishReason = candidate?.finishReason ?? seen.finishReason;
  seen.totalTokens = usageMetadata?.totalTokenCount ?? seen.totalTokens;
}

const GOOGLE_TOOLS = [
  {
    functionDeclarations: [
      {
        name: "get_weather",
        description: "Tells the weather of a city",
        parametersJsonSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      },
    ],
  },
];

for (const isStreamed of [false, true]) {
  const how = isStreamed ? "streamed" : "plain";

  prove([], `the client of Google speaks with its own vendor untouched (${how})`, async (context) => {
    const served = await serveGemini(context);
    served.google.answer = {
      parts: [
        { text: "Hm.", thought: true },
        { text: "Hello", thoughtSignature: "c2ln" },
      ],
    };
    const seen = await generate(
      googleClient(served),
      { contents: "hi", config: { labels: { team: "a" } } },
      isStreamed,
    );
    assert.equal(seen.text, "Hello");
    assert.equal(seen.thoughts, "Hm.");
    assert.equal(seen.totalTokens, 18);
    const [sent] = served.google.seen;
    assert.deepEqual(sent?.body["labels"], { team: "a" });
    assert.equal(sent?.headers["x-goog-api-key"], GEMINI_KEY);
  });

  prove([], `the client of Google asks Vertex AI, which refuses two credentials (${how})`, async (context) => {
    const served = await serveVertex(context, "global");
    served.google.answer = { parts: [{ text: "Hello" }] };
    const seen = await generate(googleClient(served), { contents: "hi" }, isStreamed, "gemini-2.5-pro");
    assert.equal(seen.text, "Hello");
    const [sent] = served.google.seen;
    assert.deepEqual(
      [sent?.headers["x-goog-api-key"], sent?.headers["authorization"]],
      [undefined, `Bearer ${GOOGLE_TOKEN}`],
    );
  });

  for (const key of ["llma", "llme"] as const) {
    prove([], `the client of Google gets text and usage of another vendor (${key}, ${how})`, async (context) => {
      const provider = await startMockProvider(context);
      const gateway = await startGateway(
        context,
        documents(GATEWAY, mockBackend(provider.port, key), route("ai", "ai")),
      );
      const config = { systemInstruction: "Be kind", temperature: 0.5, maxOutputTokens: 100 };
      const seen = await generate(googleClient({ gateway }), { contents: "one two three", config }, isStreamed);
      assert.equal(seen.text, "You said: one two three");
      assert.equal(seen.finishReason, "STOP");
      assert.ok(seen.totalTokens > 0);
    });

    prove([], `the client of Google calls a tool and has its result summarised (${key}, ${how})`, async (context) => {
      const provider = await startMockProvider(context);
      const gateway = await startGateway(
        context,
        documents(GATEWAY, mockBackend(provider.port, key), route("ai", "ai")),
      );
      const config = {
        tools: GOOGLE_TOOLS,
        toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } },
      };
      const contents: Content[] = [{ role: "user", parts: [{ text: "What is the weather in Rome" }] }];
      const asked = await generate(googleClient({ gateway }), { contents, config }, isStreamed);
      const calls = asked.contents.flatMap(({ parts = [] }) => parts).flatMap(({ functionCall }) => functionCall ?? []);
      assert.deepEqual(
        calls.map(({ name, args }) => [name, args]),
        [["get_weather", { city: "Rome" }]],
      );
      contents.push(...asked.contents);
      const functionResponse = {
        ...(calls[0]?.id === undefined ? {} : { id: calls[0].id }),
        name: "get_weather",
        response: { output: "sunny" },
      };
      contents.push({ role: "user", parts: [{ functionResponse }] });
      const summary = await generate(googleClient({ gateway }), { contents, config }, isStreamed);
      assert.equal(summary.text, "The tool says: sunny");
    });
  }
}

prove([], "a client that does not ask for events gets a stream as one JSON list", async (context) => {
  const served = await serveGemini(context);
  served.google.answer = { parts: [{ text: "Hel" }, { text: "lö" }] };
  const provider = await startMockProvider(context);
  const other = await startGateway(context, documents(GATEWAY, mockBackend(provider.port, "llma"), route("ai", "ai")));
  for (const [gateway, expected] of [
    [served.gateway, "Hellö"],
    [other, "You said: hi"],
  ] as const) {
    const body = JSON.stringify({ contents: [{ role: "user", parts: [{ text: "hi" }] }] });
    const url = `${gateway.url()}/v1beta/models/${MODEL}:streamGenerateContent`;
    const answer = await call(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    assert.equal(answer.headers["content-type"], "application/json");
    const events = JSON.parse(answer.body) as GenerateContentResponse[];
    const texts = events.flatMap(({ candidates = [] }) => candidates.flatMap(({ content }) => content?.parts ?? []));
    assert.equal(texts.map(({ text = "" }) => text).join(""), expected);
  }
});

prove([], "errors reach the client of Google in its own form", async (context) => {
  const served = await serveGemini(context);
  served.google.answer = { error: { status: 429, name: "RESOURCE_EXHAUSTED", message: "Quota exceeded" } };
  const refused = generate(googleClient(served), { contents: "hi" }, false);
  await assert.rejects(
    refused,
    (error) => error instanceof ApiError && error.status === 429 && /Quota exceeded/.test(error.message),
  );
  const provider = await startMockProvider(context);
  const backend = mockBackend(provider.port, "llme", "wrong");
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai")));
  const denied = generate(googleClient({ gateway }), { contents: "hi" }, true);
  await assert.rejects(denied, (error) => error instanceof ApiError && /UNAUTHENTICATED/.test(error.message));
  const missing = await call(`${gateway.url()}/v1beta/models/m:generateContent`, {
    method: "POST",
    body: '{"contents": 1}',
  });
  assert.deepEqual(JSON.parse(missing.body), {
    error: {
      code: 400,
      message: "failed to process LLM request: contents must be a list",
      status: "INVALID_ARGUMENT",
    },
  });
});

prove([], "the client lists the models of its own vendor, and of no other", async (context) => {
  const client = googleClient(await serveGemini(context));
  const names: (string | undefined)[] = [];
  for await (const { name } of await client.models.list()) names.push(name);
  assert.deepEqual(names, ["models/gemini-2.5-pro"]);
  assert.equal((await client.models.get({ model: "gemini-2.5-pro" })).displayName, "Gemini 2.5 Pro");
  const { gateway } = await serveVertex(context, "europe-west1");
  const { status, body } = await call(`${gateway.url()}/v1beta/models`);
  assert.deepEqual([status, (JSON.parse(body) as { error: { code: number } }).error.code], [501, 501]);
});

const EMBEDDED = { contents: ["first", "second"], config: { outputDimensionality: 2, taskType: "CLUSTERING" } };
/** A gateway that counts the tokens of embeddings in a header of its answers. */
const COUNTED = routePolicy(
  "count",
  "ai",
  "  traffic: {transformation: {response: {set: [{name: x-tokens, value: string(llm.inputTokens)}]}}}",
);

prove([], "the official client embeds texts with Gemini, whose answer it gets as it is", async (context) => {
  const { google, gateway } = await serveGemini(context);
  const { embeddings } = await googleClient({ gateway }).models.embedContent({ model: "embed-1", ...EMBEDDED });
  assert.deepEqual(
    embeddings?.map(({ values }) => values),
    [
      [0.5, 0],
      [0.5, 1],
    ],
  );
  assert.equal(google.seen[0]?.url, "/v1beta/models/embed-1:batchEmbedContents");
  const one = await call(`${gateway.url()}/v1beta/models/embed-1:embedContent`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "models/other", content: { parts: [{ text: "a" }] }, taskType: "CLUSTERING" }),
  });
  assert.equal(one.status, 200, one.body);
  assert.deepEqual(google.seen[1]?.body, {
    model: "models/embed-1",
    content: { parts: [{ text: "a" }] },
    taskType: "CLUSTERING",
  });
});

/** Answers of an OpenAI in an order of its own. */
const LIST = {
  object: "list",
  model: "m",
  data: [1, 0].map((index) => ({ object: "embedding", index, embedding: [index, 0.5] })),
  usage: { prompt_tokens: 7, total_tokens: 7 },
};

prove([], "the official client of Google embeds texts with providers of other vendors", async (context) => {
  const bodies: unknown[] = [];
  const { port } = await startScripted(context, ({ body }, response) => {
    bodies.push(body);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(LIST));
  });
  const backend = mockBackend(port);
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai"), COUNTED));
  const { embeddings, sdkHttpResponse } = await googleClient({ gateway }).models.embedContent({
    model: "text-embedding-3-small",
    ...EMBEDDED,
  });
  assert.deepEqual(
    embeddings?.map(({ values }) => values),
    [
      [0, 0.5],
      [1, 0.5],
    ],
  );
  assert.equal(sdkHttpResponse?.headers?.["x-tokens"], "7");
  assert.deepEqual(bodies, [{ model: "text-embedding-3-small", input: ["first", "second"], dimensions: 2 }]);
  const vertex = await serveVertex(context, "europe-west1", ", region: europe-west1");
  const onVertex = await googleClient(vertex).models.embedContent({ model: "text-embedding-005", ...EMBEDDED });
  assert.deepEqual(onVertex.embeddings?.[1]?.values, [0.25, -0.5]);
  assert.deepEqual(vertex.google.seen[0]?.body, {
    instances: ["first", "second"].map((content) => ({ content, task_type: "CLUSTERING" })),
    parameters: { outputDimensionality: 2 },
  });
});

prove(
  [],
  "embeddings that a provider cannot express, or does not answer, are errors of Google's form",
  async (context) => {
    let answer: object = { object: "list", data: [] };
    const { port, received } = await startScripted(context, (_request, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
    const backend = mockBackend(port);
    const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai")));
    const send = async (method: string, body: unknown): Promise<readonly [number, string]> => {
      const reply = await call(`${gateway.url()}/v1beta/models/m:${method}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const { error } = parseJson(reply.body) as { error: { code: number; message: string } };
      assert.equal(error.code, reply.status);
      return [reply.status, error.message.replace("failed to process LLM request: ", "")];
    };
    const text = { content: { parts: [{ text: "a" }] } };
    const image = { content: { parts: [{ inlineData: { mimeType: "image/png", data: "" } }] } };
    for (const [method, body, message] of [
      ["embedContent", {}, "content must be an object"],
      ["embedContent", { content: { parts: "a" } }, "content.parts must be a list"],
      ["embedContent", { content: { parts: [] } }, "content.parts must not be empty"],
      ["embedContent", image, "content.parts[0].text is needed"],
      [
        "embedContent",
        { ...text, outputDimensionality: "2" },
        "outputDimensionality must be a whole number that is not negative",
      ],
      ["batchEmbedContents", { requests: [] }, "requests must not be empty"],
      ["batchEmbedContents", { requests: [text, image] }, "requests[1].content.parts[0].text is needed"],
      [
        "batchEmbedContents",
        { requests: [text, { ...text, title: "t" }] },
        "requests[1] must have the settings of the first request",
      ],
    ] as const)
      assert.deepEqual(await send(method, body), [400, message]);
    assert.equal(received.length, 0);
    const [status] = await send("embedContent", text);
    assert.equal(status, 502, "no embedding came");
    answer = { object: "list", data: [{ index: 0, embedding: ["x"] }] };
    assert.equal((await send("embedContent", text))[0], 502, "not numbers");
  },
);
