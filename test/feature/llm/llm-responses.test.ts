/**
 * Responses through the whole gateway: the official OpenAI client speaks them to a provider of the same format and to one
 * that knows chat completions only, and the official Anthropic client reaches a provider that knows nothing else.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { parseAllDocuments, stringify } from "yaml";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import type { OpenAiAnswer } from "../../support/servers/llm/openai-answers.ts";
import { OPENAI_KEY, startOpenAi, type OpenAiServer } from "../../support/servers/llm/openai.ts";

type Response = OpenAI.Responses.Response;
type Request = OpenAI.Responses.ResponseCreateParamsNonStreaming;

const PROVIDERS = {
  "the same format": "llma: {}",
  "chat completions": "custom: {formats: [{type: Completions}]}",
};
type Kind = keyof typeof PROVIDERS;

interface Setup {
  readonly openai: OpenAiServer;
  /** Sends a request, streamed or not, and returns the whole answer. */
  readonly ask: (request: Request) => Promise<Response>;
}

async function connect(context: ProofContext, kind: Kind, isStreamed: boolean): Promise<Setup> {
  const openai = await startOpenAi(context);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {${PROVIDERS[kind]}, host: 127.0.0.1, port: ${openai.port}}}
  policies: {auth: {key: ${OPENAI_KEY}}}
`;
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai")));
  const client = new OpenAI({ apiKey: "of-the-client", baseURL: `${gateway.url()}/v1`, maxRetries: 0 });
  const ask = async (request: Request): Promise<Response> =>
    isStreamed
      ? await client.responses.stream({ ...request, stream: true }).finalResponse()
      : await client.responses.create(request);
  return { openai, ask };
}

/** Returns the items of an answer as they go into the next request, without what the client parsed for its caller. */
function inputOf({ output }: Response): OpenAI.Responses.ResponseInputItem[] {
  const keep = (name: string, value: unknown): unknown => (name.startsWith("parsed") ? undefined : value);
  return JSON.parse(JSON.stringify(output, keep)) as OpenAI.Responses.ResponseInputItem[];
}

const TOOLS: OpenAI.Responses.Tool[] = [
  {
    type: "function",
    name: "weather",
    description: "Tells the weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
    strict: true,
  },
];
const CALLS = ["Rome", "Oslo"].map((city, at) => ({
  id: `call_${at}`,
  name: "weather",
  arguments: JSON.stringify({ city }),
}));
const PIXEL = "data:image/png;base64,iVBORw0KGgo=";

/** What the client sends and reads; the strict server refuses what the real one would. */
interface Case {
  readonly name: string;
  readonly answer: OpenAiAnswer;
  readonly run: (setup: Setup) => Promise<void>;
}

const CASES: readonly Case[] = [
  {
    name: "a text with usage",
    answer: { text: "Hello there." },
    async run({ ask }) {
      const answer = await ask({ model: "gpt-9", instructions: "Be kind.", input: "hi", store: false });
      assert.equal(answer.output_text, "Hello there.");
      assert.deepEqual([answer.status, answer.instructions], ["completed", "Be kind."]);
      const { input_tokens, output_tokens, input_tokens_details } = answer.usage ?? {};
      assert.deepEqual([input_tokens, output_tokens, input_tokens_details?.cached_tokens], [20, 7, 8]);
    },
  },
  {
    name: "parallel calls, and their results on the next turn",
    answer: { text: "I look.", calls: CALLS },
    async run({ openai, ask }) {
      const input: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: "Weather in Rome and Oslo?" }];
      const answer = await ask({ model: "gpt-9", input, tools: TOOLS, store: false });
      const calls = answer.output.filter((item) => item.type === "function_call");
      assert.deepEqual(
        calls.map(({ call_id, name, arguments: given }) => ({ id: call_id, name, arguments: given })),
        CALLS,
      );
      openai.answer = { text: "Sunny and snow." };
      // The client gives back what it got, as its documentation says.
      input.push(...inputOf(answer));
      for (const { call_id } of calls) input.push({ type: "function_call_output", call_id, output: "fine" });
      assert.equal((await ask({ model: "gpt-9", input, tools: TOOLS, store: false })).output_text, "Sunny and snow.");
    },
  },
  {
    name: "an image",
    answer: { text: "A pixel." },
    async run({ openai, ask }) {
      const content: OpenAI.Responses.ResponseInputContent[] = [
        { type: "input_text", text: "What is this?" },
        { type: "input_image", image_url: PIXEL, detail: "low" },
      ];
      const input: OpenAI.Responses.ResponseInput = [{ role: "user", content }];
      assert.equal((await ask({ model: "gpt-9", input, store: false })).output_text, "A pixel.");
      assert.ok(JSON.stringify(openai.seen[0]?.body).includes(PIXEL));
    },
  },
  {
    name: "structured output",
    answer: { text: '{"city":"Rome"}' },
    async run({ openai, ask }) {
      const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
      const text: OpenAI.Responses.ResponseTextConfig = {
        format: { type: "json_schema", name: "place", schema, strict: true },
      };
      const answer = await ask({ model: "gpt-9", input: "Where?", text, store: false });
      assert.equal(answer.output_text, '{"city":"Rome"}');
      const { text: native, response_format: translated } = openai.seen[0]?.body ?? {};
      assert.ok(JSON.stringify(native ?? translated).includes(JSON.stringify(schema)));
    },
  },
  {
    name: "a refusal",
    answer: { refusal: "I can't help with that." },
    async run({ ask }) {
      const { output } = await ask({ model: "gpt-9", input: "?", store: false });
      const [message] = output;
      const [part] = message?.type === "message" ? message.content : [];
      assert.ok(part?.type === "refusal");
      assert.equal(part.refusal, "I can't help with that.");
    },
  },
  {
    name: "an answer that is cut",
    answer: { text: "Once upon", isCut: true },
    async run({ ask }) {
      const answer = await ask({ model: "gpt-9", input: "?", max_output_tokens: 16, store: false });
      assert.deepEqual([answer.status, answer.incomplete_details?.reason], ["incomplete", "max_output_tokens"]);
      assert.equal(answer.output_text, "Once upon");
    },
  },
  {
    name: "errors with their status and type",
    answer: {},
    async run({ openai, ask }) {
      for (const status of [400, 401, 404, 429, 500, 529]) {
        openai.answer = { error: { status, type: `type_${status}`, message: `refused with ${status}` } };
        const failure = await ask({ model: "gpt-9", input: "hi", store: false }).then(
          () => assert.fail(),
          (error: unknown) => error,
        );
        assert.ok(failure instanceof OpenAI.APIError);
        assert.deepEqual([failure.status, failure.type], [status, `type_${status}`]);
        assert.match(failure.message, new RegExp(`refused with ${status}`));
      }
    },
  },
];

for (const kind of Object.keys(PROVIDERS) as Kind[])
  for (const isStreamed of [false, true])
    for (const { name, answer, run } of CASES)
      prove(
        [],
        `the official client gets ${name} from ${kind}, ${isStreamed ? "streamed" : "whole"}`,
        async (context) => {
          const setup = await connect(context, kind, isStreamed);
          setup.openai.answer = answer;
          await run(setup);
        },
      );

for (const isStreamed of [false, true])
  prove(
    [],
    `encrypted reasoning comes back to its provider unchanged on the next turn, ${isStreamed ? "streamed" : "whole"}`,
    async (context) => {
      const { openai, ask } = await connect(context, "the same format", isStreamed);
      openai.answer = { reasoning: { text: "I think.", sealed: "gAAAAAB" }, calls: CALLS.slice(0, 1) };
      const settings = {
        model: "gpt-9",
        store: false,
        tools: TOOLS,
        include: ["reasoning.encrypted_content"],
      } as const;
      const input: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: "Weather?" }];
      const reasoning = { effort: "low", summary: "auto" } as const;
      const first = await ask({ ...settings, include: [...settings.include], input, reasoning });
      input.push(...inputOf(first));
      input.push({ type: "function_call_output", call_id: "call_0", output: "fine" });
      openai.answer = { text: "Fine." };
      await ask({ ...settings, include: [...settings.include], input, reasoning });
      const sent = openai.seen[1]?.body["input"] as { type: string; encrypted_content?: string }[];
      assert.equal(sent.find(({ type }) => type === "reasoning")?.encrypted_content, "gAAAAAB");
    },
  );

prove(
  [],
  "unknown fields reach a provider of the same format, and state is refused before any other",
  async (context) => {
    const native = await connect(context, "the same format", false);
    native.openai.answer = { text: "a" };
    await native.ask({ model: "gpt-9", input: "hi", previous_response_id: "resp_0", store: true, truncation: "auto" });
    const { previous_response_id, store, truncation } = native.openai.seen[0]?.body ?? {};
    assert.deepEqual([previous_response_id, store, truncation], ["resp_0", true, "auto"]);
    const { openai, ask } = await connect(context, "chat completions", false);
    for (const more of [
      { previous_response_id: "resp_0" },
      { store: true },
      { tools: [{ type: "web_search" }] },
    ] as const)
      await assert.rejects(
        ask({ model: "gpt-9", input: "hi", ...(more as object) }),
        (error) => error instanceof OpenAI.BadRequestError && error.type === "invalid_request_error",
      );
    assert.equal(openai.seen.length, 0);
  },
);

type Message = Anthropic.Message;

/** @returns sends messages, streamed or not, and returns the whole answer */
async function connectMessages(context: ProofContext, isStreamed: boolean) {
  const openai = await startOpenAi(context);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {custom: {formats: [{type: Responses}]}, host: 127.0.0.1, port: ${openai.port}}}
  policies: {auth: {key: ${OPENAI_KEY}}}
`;
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai")));
  const client = new Anthropic({ apiKey: "of-the-client", baseURL: gateway.url(), maxRetries: 0 });
  const ask = (request: Omit<Anthropic.MessageCreateParamsNonStreaming, "model" | "max_tokens">): Promise<Message> => {
    const body = { model: "gpt-9", max_tokens: 4000, ...request };
    return isStreamed ? client.messages.stream(body).finalMessage() : client.messages.create(body);
  };
  return { openai, ask };
}

for (const isStreamed of [false, true]) {
  const how = isStreamed ? "streamed" : "whole";

  prove([], `the official Anthropic client thinks, calls and goes on with Responses, ${how}`, async (context) => {
    const { openai, ask } = await connectMessages(context, isStreamed);
    openai.answer = { reasoning: { text: "I think.", sealed: "gAAAAAB" }, text: "I look.", calls: CALLS };
    const tools: Anthropic.Tool[] = [
      { name: "weather", input_schema: { type: "object", properties: { city: { type: "string" } } } },
    ];
    const thinking: Anthropic.ThinkingConfigParam = { type: "enabled", budget_tokens: 2000 };
    const messages: Anthropic.MessageParam[] = [
      {
        role: "user",
        content: [
          {
            type: "image",
            source: { type: "base64", media_type: "image/png", data: PIXEL.slice(PIXEL.indexOf(",") + 1) },
          },
          { type: "text", text: "Weather here?" },
        ],
      },
    ];
    const first = await ask({ system: "Be kind.", messages, tools, thinking });
    assert.deepEqual(
      first.content.map(({ type }) => type),
      ["thinking", "text", "tool_use", "tool_use"],
    );
    const [thought] = first.content;
    assert.ok(thought?.type === "thinking");
    assert.deepEqual([thought.thinking, thought.signature], ["I think.", "gw1:openai:gAAAAAB"]);
    assert.deepEqual(
      [first.stop_reason, first.usage.input_tokens, first.usage.cache_read_input_tokens],
      ["tool_use", 12, 8],
    );
    const results = CALLS.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "fine" }) as const);
    messages.push({ role: "assistant", content: first.content }, { role: "user", content: results });
    openai.answer = { text: "Fine." };
    const second = await ask({ messages, tools, thinking });
    assert.deepEqual(
      second.content.map((block) => (block.type === "text" ? block.text : block.type)),
      ["Fine."],
    );
    assert.equal(second.stop_reason, "end_turn");
    const { input, store, include } = openai.seen[1]?.body ?? {};
    const sent = (input as { type: string; encrypted_content?: string }[]).find(({ type }) => type === "reasoning");
    assert.deepEqual([sent?.encrypted_content, store, include], ["gAAAAAB", false, ["reasoning.encrypted_content"]]);
    assert.ok(JSON.stringify(openai.seen[0]?.body).includes(PIXEL));
  });

  prove(
    [],
    `the official Anthropic client gets schemas, refusals, limits and errors from Responses, ${how}`,
    async (context) => {
      const { openai, ask } = await connectMessages(context, isStreamed);
      const messages: Anthropic.MessageParam[] = [{ role: "user", content: "hi" }];
      openai.answer = { text: "{}" };
      const schema = { type: "object", additionalProperties: false };
      await ask({ messages, output_config: { format: { type: "json_schema", schema } } });
      assert.deepEqual(openai.seen[0]?.body["text"], {
        format: { type: "json_schema", name: "structured_output", schema },
      });
      openai.answer = { refusal: "I can't." };
      const refused = await ask({ messages });
      assert.deepEqual([refused.stop_reason, refused.content], ["refusal", [{ type: "text", text: "I can't." }]]);
      openai.answer = { text: "Once", isCut: true };
      assert.equal((await ask({ messages })).stop_reason, "max_tokens");
      for (const status of [400, 401, 404, 429, 500, 529]) {
        openai.answer = { error: { status, type: `type_${status}`, message: `refused with ${status}` } };
        const failure = await ask({ messages }).then(
          () => assert.fail(),
          (error: unknown) => error,
        );
        assert.ok(failure instanceof Anthropic.APIError);
        assert.equal(failure.status, status);
        assert.match(failure.message, new RegExp(`refused with ${status}`));
      }
    },
  );
}

prove([], "the examples of the page about OpenAI are served as they stand", async (context) => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/llm-openai.md"), "utf8");
  const examples = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, yaml = ""]) => yaml);
  assert.equal(examples.length, 3);
  for (const yaml of examples) {
    const openai = await startOpenAi(context);
    openai.answer = { text: "Hello" };
    const [backend, secret] = parseAllDocuments(yaml).map((document) => document.toJS());
    Object.assign(backend.spec.ai.provider, { host: "127.0.0.1", port: openai.port });
    secret.stringData.Authorization = OPENAI_KEY;
    const { name } = backend.metadata;
    const objects = documents(GATEWAY, stringify(backend), stringify(secret), route(name, name));
    const gateway = await startGateway(context, objects);
    const client = new OpenAI({ apiKey: "of-the-client", baseURL: `${gateway.url()}/v1`, maxRetries: 0 });
    assert.equal((await client.responses.create({ model: "gpt-9", input: "hi" })).output_text, "Hello", name);
  }
});
