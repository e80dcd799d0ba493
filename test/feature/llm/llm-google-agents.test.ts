/** Agents in front of Google's providers: Claude's client, requests as gemini-cli makes them, and the pages of docs/. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { parseAllDocuments, stringify } from "yaml";
import { call, type Answer } from "../../support/clients/http.ts";
import { documents, GATEWAY, route, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { serveGemini, serveVertex, type Served } from "../../support/gateway/google.ts";
import { mockBackend, startMockProvider } from "../../support/gateway/mock-provider.ts";
import { prove } from "../../support/proofs/prove.ts";
import { startGoogle } from "../../support/servers/llm/google.ts";

function claudeClient({ gateway }: Pick<Served, "gateway">): Anthropic {
  return new Anthropic({ apiKey: "of-the-client", baseURL: gateway.url(), maxRetries: 0 });
}

const TOOLS: Anthropic.Tool[] = [{ name: "get_time", input_schema: { type: "object", properties: {} } }];
const SIGNED = { google: { thought_signature: "c2lnbmVk" } };

for (const isStreamed of [false, true])
  prove(
    [],
    `a messages client keeps Gemini's signatures over two turns (${isStreamed ? "streamed" : "plain"})`,
    async (context) => {
      const served = await serveGemini(context);
      const model = "gemini-3-pro-preview";
      const made = {
        id: "t1",
        type: "function",
        function: { name: "get_time", arguments: "{}" },
        extra_content: SIGNED,
      };
      const choice = { index: 0, finish_reason: "tool_calls" };
      served.google.answer = {
        body: {
          id: "c",
          model,
          choices: [{ ...choice, message: { role: "assistant", content: null, tool_calls: [made] } }],
        },
        events: [
          {
            id: "c",
            model,
            choices: [{ index: 0, delta: { role: "assistant", tool_calls: [{ index: 0, ...made }] } }],
          },
          { id: "c", model, choices: [{ ...choice, delta: {} }] },
        ],
      };
      const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Time?" }];
      const ask = (): Promise<Anthropic.Message> => {
        const params = { model, max_tokens: 99, messages, tools: TOOLS };
        const client = claudeClient(served);
        return isStreamed ? client.messages.stream(params).finalMessage() : client.messages.create(params);
      };
      const asked = await ask();
      assert.equal(asked.stop_reason, "tool_use");
      messages.push({ role: "assistant", content: asked.content });
      messages.push({
        role: "user",
        content: asked.content.flatMap((block) =>
          block.type === "tool_use" ? [{ type: "tool_result", tool_use_id: block.id, content: "noon" } as const] : [],
        ),
      });
      await ask();
      const sent = served.google.seen[1];
      assert.equal(sent?.url, "/v1beta/openai/chat/completions");
      const [, said, result] = sent.body["messages"] as { tool_calls?: object[]; tool_call_id?: string }[];
      assert.deepEqual(said?.tool_calls, [made]);
      assert.equal(result?.tool_call_id, "t1");
    },
  );

const CLAUDE_EVENTS = [
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "c",
      content: [],
      usage: { input_tokens: 3, output_tokens: 1 },
    },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
  { type: "message_stop" },
];

prove(
  [],
  "a messages client asks Claude on Vertex AI without what the platform refuses, with its betas",
  async (context) => {
    const served = await serveVertex(context, "global");
    served.google.answer = { events: CLAUDE_EVENTS };
    const cache = { type: "ephemeral", scope: "org" } as unknown as Anthropic.CacheControlEphemeral; // not yet in the types
    const stream = claudeClient(served).messages.stream(
      {
        model: "claude-new-9-20260101",
        max_tokens: 99,
        system: [{ type: "text", text: "s", cache_control: cache }],
        messages: [{ role: "user", content: [{ type: "text", text: "hi", cache_control: cache }] }],
      },
      { headers: { "anthropic-beta": "interleaved-thinking-2025-05-14" } },
    );
    assert.equal(await stream.finalText(), "Hello");
    const [sent] = served.google.seen;
    assert.match(sent?.url ?? "", /\/anthropic\/models\/claude-new-9@20260101:streamRawPredict$/);
    assert.equal(sent?.headers["anthropic-beta"], "interleaved-thinking-2025-05-14");
  },
);

prove([], "a client of Claude on Vertex AI is served by its own platform and by others", async (context) => {
  const served = await serveVertex(context, "global");
  served.google.answer = { events: CLAUDE_EVENTS };
  const path = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-new-9@20260101:streamRawPredict";
  const messages = [{ role: "user", content: "one two" }];
  const body = { anthropic_version: "vertex-2023-10-16", max_tokens: 99, messages, stream: true };
  const own = await post(served.gateway, path, body);
  assert.match(own.body, /"text":"Hello"/);
  assert.match(served.google.seen[0]?.url ?? "", /models\/claude-new-9@20260101:streamRawPredict$/);
  const provider = await startMockProvider(context);
  for (const key of ["llma", "llme"] as const) {
    const backend = mockBackend(provider.port, key);
    const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai")));
    const other = await post(gateway, path.replace("streamRawPredict", "rawPredict"), { ...body, stream: undefined });
    assert.equal(JSON.parse(other.body).content?.[0]?.text, "You said: one two", other.body);
  }
});

prove([], "a name in a path that could steer it is refused", async (context) => {
  const served = await serveVertex(context, "global");
  const body = { anthropic_version: "vertex-2023-10-16", max_tokens: 9, messages: [{ role: "user", content: "hi" }] };
  for (const name of ["claude-x%2f..%2fy", "claude-x%3fa", "%2e%2e"]) {
    const answer = await post(served.gateway, `/publishers/anthropic/models/${name}:rawPredict`, body);
    assert.equal(answer.status, 400, name);
    const google = await post(served.gateway, `/v1beta/models/${name}:generateContent`, CLI_TURN);
    assert.equal(google.status, 400, name);
  }
  assert.equal(served.google.seen.length, 0);
});

prove([], "the models of the Gemini API are listed at its compatible path", async (context) => {
  const served = await serveGemini(context);
  const { status, body } = await call(`${served.gateway.url()}/v1/models`);
  assert.deepEqual([status, JSON.parse(body).data], [200, [{ id: "models/gemini-2.5-pro", object: "model" }]]);
});

/** A turn of gemini-cli in the middle of its work, as it goes over the wire. */
const CLI_TURN = {
  contents: [
    {
      role: "user",
      parts: [
        { text: "<session_context>Linux, /home/me/app</session_context>" },
        { text: "What is the weather in Rome" },
      ],
    },
  ],
  systemInstruction: { role: "user", parts: [{ text: "You are an interactive CLI agent." }] },
  tools: [
    {
      functionDeclarations: [
        {
          name: "get_weather",
          description: "Tells the weather of a city",
          parametersJsonSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
        },
      ],
    },
  ],
  generationConfig: {
    temperature: 1,
    topP: 0.95,
    topK: 64,
    thinkingConfig: { includeThoughts: true, thinkingBudget: 8192 },
  },
};

function post(gateway: TestGateway, path: string, body: object): Promise<Answer> {
  const headers = {
    "content-type": "application/json",
    "x-goog-api-key": "of-the-client",
    "user-agent": "GeminiCLI/0.30.0",
  };
  return call(gateway.url() + path, { method: "POST", headers, body: JSON.stringify(body) });
}

/** Returns the parts of all events of a stream. */
function partsOf(
  body: string,
): { text?: string; functionCall?: { name: string; args: object }; thoughtSignature?: string }[] {
  const events = body.split(/\r?\n\r?\n/).filter((event) => event.startsWith("data: "));
  return events.flatMap((event) => JSON.parse(event.slice("data: ".length)).candidates?.[0]?.content?.parts ?? []);
}

prove([], "gemini-cli works in front of its own vendor and of others", async (context) => {
  const path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
  const served = await serveGemini(context);
  served.google.answer = {
    parts: [{ functionCall: { name: "get_weather", args: { city: "Rome" } }, thoughtSignature: "c2ln" }],
  };
  const provider = await startMockProvider(context);
  for (const gateway of [
    served.gateway,
    await startGateway(context, documents(GATEWAY, mockBackend(provider.port, "llma"), route("ai", "ai"))),
    await startGateway(context, documents(GATEWAY, mockBackend(provider.port, "llme"), route("ai", "ai"))),
  ]) {
    const asked = await post(gateway, path, CLI_TURN);
    assert.equal(asked.status, 200, asked.body);
    assert.match(String(asked.headers["content-type"]), /^text\/event-stream/);
    const parts = partsOf(asked.body).filter(({ functionCall }) => functionCall !== undefined);
    const { args, name } = parts[0]?.functionCall ?? {};
    assert.deepEqual([name, args], ["get_weather", { city: "Rome" }]);
    // The client gives its results identifiers of its own.
    const functionResponse = { id: "get_weather-1763", name, response: { output: "sunny" } };
    const contents = [...CLI_TURN.contents, { role: "model", parts }, { role: "user", parts: [{ functionResponse }] }];
    served.google.answer = { parts: [{ text: "The tool says: sunny" }] };
    const summary = await post(gateway, path, { ...CLI_TURN, contents });
    assert.equal(
      partsOf(summary.body)
        .map(({ text = "" }) => text)
        .join(""),
      "The tool says: sunny",
      summary.body,
    );
  }
});

prove([], "the examples of the page about Google are served as they stand", async (context) => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/llm-google.md"), "utf8");
  const blocks = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, yaml = ""]) => yaml);
  assert.equal(blocks.length, 2);
  for (const yaml of blocks) {
    const [backend, secret] = parseAllDocuments(yaml).map((document) => document.toJS());
    const { provider } = backend.spec.ai;
    const google = await startGoogle(context, provider.llmg?.region, {
      project: "my-project",
      key: secret.stringData.Authorization,
    });
    Object.assign(provider, { host: "127.0.0.1", port: google.port });
    google.answer = { parts: [{ text: "Hello" }] };
    const { name } = backend.metadata;
    const gateway = await startGateway(
      context,
      documents(GATEWAY, stringify(backend), stringify(secret), route(name, name)),
    );
    const body = { model: "gemini-2.5-flash", messages: [{ role: "user", content: "hi" }] };
    const answer = await post(gateway, "/v1/chat/completions", body);
    assert.equal(JSON.parse(answer.body).choices?.[0]?.message.content, "Hello", answer.body);
  }
});
