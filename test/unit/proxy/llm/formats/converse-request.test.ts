/** Requests that the Converse format prints: what the strict server takes, in the words of Converse. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Losses } from "../../../../../src/proxy/llm/conversation/losses.ts";
import { ProxyError } from "../../../../../src/proxy/exchange/errors.ts";
import type { ClientSide, PrintedRequest, ProviderSide } from "../../../../../src/proxy/llm/formats/chat-format.ts";
import { completions } from "../../../../../src/proxy/llm/formats/completions/index.ts";
import { converse } from "../../../../../src/proxy/llm/formats/converse/index.ts";
import { messages } from "../../../../../src/proxy/llm/formats/messages/index.ts";
import type { JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";
import { findConverseFault } from "../../../../support/servers/llm/bedrock-checks.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";

const CLAUDE = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
const ADAPTIVE = "anthropic.claude-opus-4-7-v1:0";
const { printRequest, readAnswer } = converse.provider as ProviderSide; // the format has this side

interface Printed extends PrintedRequest {
  readonly lost: readonly string[];
}

function print(client: ClientSide | undefined, body: JsonObject, model: string = CLAUDE): Printed {
  assert.ok(client);
  const losses = new Losses();
  const conversation = client.readRequest(body, { model, streaming: false, losses });
  return { ...printRequest(conversation, { losses, tags: new Set() }), lost: losses.names };
}

/** Prints a request of the Messages API and checks it. */
function fromMessages(body: JsonObject, model?: string): Printed {
  const printed = print(messages.client, { max_tokens: 2000, ...body }, model);
  assert.equal(findConverseFault(JSON.parse(JSON.stringify(printed.body))), undefined);
  return printed;
}

function fromCompletions(body: JsonObject, model?: string): Printed {
  const printed = print(completions.client, body, model);
  assert.equal(findConverseFault(JSON.parse(JSON.stringify(printed.body))), undefined);
  return printed;
}

const ASKED = [{ role: "user", content: "hi" }];
const TOOL = { name: "get", input_schema: { type: "object" } };

function user(...content: JsonObject[]): JsonObject {
  return { messages: [{ role: "user", content }] };
}

function contentOf({ body }: Printed, message = 0): unknown {
  return (body["messages"] as { content: unknown }[])[message]?.content;
}

test("settings go where Converse has them, and a limit is always sent", () => {
  assert.deepEqual(fromCompletions({ messages: ASKED }).body, {
    messages: [{ role: "user", content: [{ text: "hi" }] }],
    inferenceConfig: { maxTokens: 4096 },
  });
  const printed = fromMessages({
    messages: ASKED,
    system: "Be short.",
    temperature: 0.5,
    top_p: 0.9,
    top_k: 40,
    stop_sequences: ["END", " "],
    metadata: { user_id: "u" },
    context_management: { edits: [] },
    service_tier: "auto",
  });
  assert.deepEqual(printed.body, {
    messages: [{ role: "user", content: [{ text: "hi" }] }],
    system: [{ text: "Be short." }],
    inferenceConfig: { maxTokens: 2000, temperature: 0.5, topP: 0.9, stopSequences: ["END"] },
    additionalModelRequestFields: { top_k: 40, context_management: { edits: [] } },
  });
  assert.deepEqual(printed.lost, ["service_tier", "user"]);
});

test("models of other vendors get their own words", () => {
  const body = { messages: ASKED, reasoning_effort: "xhigh" };
  const open = fromCompletions(body, "openai.gpt-oss-120b-1:0");
  assert.deepEqual(open.body["additionalModelRequestFields"], { reasoning_effort: "high" });
  const llama = fromCompletions({ ...body, seed: 1, frequency_penalty: 1, presence_penalty: 1 }, "meta.llama3-70b");
  assert.equal(llama.body["additionalModelRequestFields"], undefined);
  assert.deepEqual(llama.lost, ["seed", "presence_penalty", "frequency_penalty", "reasoning_effort"]);
  const nova = fromMessages({ messages: ASKED, top_k: 9 }, "us.amazon.nova-pro-v1:0");
  assert.deepEqual(nova.body["additionalModelRequestFields"], { inferenceConfig: { topK: 9 } });
});

test("thinking is a budget or an effort by model, and switches off what it does not go with", () => {
  const body = { messages: ASKED, temperature: 0.2, thinking: { type: "enabled", budget_tokens: 1500 } };
  const older = fromMessages(body);
  assert.deepEqual(older.body["additionalModelRequestFields"], {
    thinking: { type: "enabled", budget_tokens: 1500 },
  });
  assert.deepEqual(older.body["inferenceConfig"], { maxTokens: 2000 });
  assert.deepEqual(older.lost, ["temperature"]);
  assert.deepEqual(fromMessages(body, ADAPTIVE).body["additionalModelRequestFields"], {
    thinking: { type: "adaptive", display: "summarized" },
    output_config: { effort: "low" },
  });
  const off = fromMessages({ messages: ASKED, thinking: { type: "disabled" } });
  assert.deepEqual(off.body["additionalModelRequestFields"], { thinking: { type: "disabled" } });
  const forced = { ...body, tools: [TOOL], tool_choice: { type: "any" } };
  assert.deepEqual((fromMessages(forced).body["toolConfig"] as JsonObject)["toolChoice"], { auto: {} });
});

test("structured output is a schema as text, beside the effort", () => {
  const schema = { type: "object", properties: {}, additionalProperties: false };
  const format = { type: "json_schema", json_schema: { name: "city", schema } };
  const structure = { jsonSchema: { name: "city", schema: JSON.stringify(schema) } };
  const textFormat = { type: "json_schema", structure };
  const plain = fromCompletions({ messages: ASKED, response_format: format });
  assert.deepEqual(plain.body["outputConfig"], { textFormat });
  const thinking = fromCompletions({ messages: ASKED, response_format: format, reasoning_effort: "high" }, ADAPTIVE);
  assert.deepEqual(thinking.body["outputConfig"], { textFormat, effort: "high" });
  const any = fromCompletions({ messages: ASKED, response_format: { type: "json_object" } });
  assert.equal(any.body["outputConfig"], undefined);
  assert.match(JSON.stringify(any.body["system"]), /one JSON object/);
});

const LONG = `mcp__server__${"x".repeat(60)}`;

test("names of tools that are not allowed are replaced everywhere and remembered", () => {
  const tools = ["ok-1", "a.b", "a_b", "a/b", LONG].map((name) => ({ ...TOOL, name }));
  const { body, toolNames } = fromMessages({
    tools,
    tool_choice: { type: "tool", name: LONG },
    messages: [
      ...ASKED,
      { role: "assistant", content: [{ type: "tool_use", id: "call.1", name: "a.b", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call.1", content: "done" }] },
    ],
  });
  const { tools: printed, toolChoice } = body["toolConfig"] as { tools: JsonObject[]; toolChoice: JsonObject };
  const names = printed.map(({ toolSpec }) => (toolSpec as JsonObject)["name"] as string);
  assert.deepEqual(names, ["ok-1", "a_b_2e7336", "a_b", "a_b_c14cdd", `mcp__server__${"x".repeat(44)}_7b2f92`]);
  assert.deepEqual(toolChoice, { tool: { name: names[4] } });
  assert.deepEqual([...(toolNames ?? [])].sort(), [
    [names[1], "a.b"],
    [names[3], "a/b"],
    [names[4], LONG],
  ]);
  assert.match(JSON.stringify(body["messages"]), /"toolUse":\{"toolUseId":"call_1","name":"a_b_2e7336"/);
  const call = { toolUse: { toolUseId: "t", name: names[4] as string, input: { a: 1 } } };
  const answer = readAnswer({ output: { message: { content: [call] } } }, { model: "m", toolNames });
  assert.deepEqual(answer.choices[0]?.parts, [{ kind: "call", id: "t", name: LONG, arguments: '{"a":1}' }]);
});

test("a history with calls and no tools gets a placeholder", () => {
  const { body } = fromMessages({
    messages: [
      ...ASKED,
      { role: "assistant", content: [{ type: "tool_use", id: "t", name: "get", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: " ", is_error: true }] },
    ],
  });
  assert.match(JSON.stringify(body["toolConfig"]), /must not be called/);
  const result = { toolUseId: "t", content: [{ text: "(no output)" }], status: "error" };
  assert.deepEqual((body["messages"] as JsonObject[])[2], { role: "user", content: [{ toolResult: result }] });
});

test("calls one at a time are a field of Claude; other choices are those of Converse", () => {
  const choose = (tool_choice: JsonObject | undefined, model?: string): JsonObject => {
    const { body } = fromMessages({ messages: ASKED, tools: [TOOL], ...(tool_choice && { tool_choice }) }, model);
    const { toolChoice } = body["toolConfig"] as JsonObject;
    return { toolChoice, ...(body["additionalModelRequestFields"] as JsonObject | undefined) };
  };
  const single = { disable_parallel_tool_use: true };
  assert.deepEqual(choose(undefined), { toolChoice: undefined });
  assert.deepEqual(choose({ type: "auto" }), { toolChoice: { auto: {} } });
  assert.deepEqual(choose({ type: "any" }), { toolChoice: { any: {} } });
  assert.deepEqual(choose({ type: "none" }), { toolChoice: undefined });
  assert.deepEqual(choose({ type: "tool", name: "get", ...single }), {
    toolChoice: undefined,
    tool_choice: { type: "tool", name: "get", ...single },
  });
  assert.deepEqual(choose({ type: "auto", ...single }), {
    toolChoice: undefined,
    tool_choice: { type: "auto", ...single },
  });
  assert.deepEqual(choose({ type: "any", ...single }, "amazon.nova-lite-v1:0"), { toolChoice: { any: {} } });
});

const MARK = { cache_control: { type: "ephemeral" } };
const POINT = { cachePoint: { type: "default" } };

test("four cache marks at most are honoured, in the order system, messages, tools", () => {
  const text = (name: string): JsonObject => ({ type: "text", text: name, ...MARK });
  const body = {
    tools: [{ ...TOOL, ...MARK }],
    system: [text("s"), { type: "text", text: "t", cache_control: { type: "ephemeral", ttl: "1h" } }],
    ...user(text("1"), text("2"), text("3")),
  };
  const marked = fromMessages(body);
  assert.deepEqual(marked.body["system"], [
    { text: "s" },
    POINT,
    { text: "t" },
    { cachePoint: { type: "default", ttl: "1h" } },
  ]);
  assert.deepEqual(contentOf(marked), [{ text: "1" }, POINT, { text: "2" }, POINT, { text: "3" }]);
  assert.equal(marked.lost.length, 2);
  const old = fromMessages(body, "anthropic.claude-v2:1");
  assert.doesNotMatch(JSON.stringify(old.body), /cachePoint/);
  const nova = fromMessages({ ...body, system: "s" }, "amazon.nova-pro-v1:0");
  assert.equal(JSON.stringify(nova.body).split("cachePoint").length, 4);
});

test("cache points move away from where they are refused", () => {
  const file = (name: string, media_type: string): JsonObject => ({
    type: "document",
    title: name,
    source: { type: "base64", media_type, data: "YQ==" },
  });
  const csv = fromMessages(user({ type: "text", text: "x" }, { ...file("a", "text/csv"), ...MARK }));
  assert.deepEqual(
    (contentOf(csv) as JsonObject[]).map((block) => Object.keys(block)[0]),
    ["text", "cachePoint", "document"],
  );
  const pdf = fromMessages(user({ type: "text", text: "x" }, { ...file("a", "application/pdf"), ...MARK }));
  assert.deepEqual(
    (contentOf(pdf) as JsonObject[]).map((block) => Object.keys(block)[0]),
    ["text", "document", "cachePoint"],
  );
  const blank = fromMessages(user({ type: "text", text: " ", ...MARK }, { type: "text", text: "x" }));
  assert.deepEqual(contentOf(blank), [{ text: "x" }]);
});

test("documents get allowed unique names and a text beside them", () => {
  const pdf = { type: "base64", media_type: "application/pdf", data: "YQ==" };
  const plain = { type: "text", media_type: "text/plain", data: "hi" };
  const printed = fromMessages(
    user(
      { type: "document", title: "Q3: café  report.pdf", source: pdf, citations: { enabled: true } },
      { type: "document", title: "Q3: café report", source: plain, context: "old" },
      { type: "document", source: plain },
    ),
  );
  const name = "Q3- caf- report";
  assert.deepEqual(contentOf(printed), [
    { text: name },
    { document: { format: "pdf", name, source: { bytes: "YQ==" }, citations: { enabled: true } } },
    { document: { format: "txt", name: `${name} (2)`, source: { bytes: "aGk=" }, context: "old" } },
    { document: { format: "txt", name: "document", source: { bytes: "aGk=" } } },
  ]);
});

test("only inline images of known formats and inline files can be sent", () => {
  const image = (source: JsonObject): JsonObject => user({ type: "image", source });
  const refused = (body: JsonObject, text: RegExp): void => {
    assert.throws(
      () => fromMessages(body),
      (error) => error instanceof ProxyError && error.code === "llm_request_invalid" && text.test(error.text),
    );
  };
  const jpg = fromMessages(image({ type: "base64", media_type: "image/jpg", data: "YQ==" }));
  assert.deepEqual(contentOf(jpg), [{ image: { format: "jpeg", source: { bytes: "YQ==" } } }]);
  refused(image({ type: "url", url: "https://example.com/a.png" }), /messages\[0\]\.content\[0\]\.source .*data URL/);
  refused(image({ type: "base64", media_type: "image/bmp", data: "YQ==" }), /not image\/bmp/);
  refused(
    user({ type: "document", source: { type: "url", url: "https://example.com/a.pdf" } }),
    /content\[0\]\.source/,
  );
  refused(user({ type: "document", source: { type: "base64", media_type: "video/mp4", data: "YQ==" } }), /one of pdf/);
  refused({ messages: [{ role: "user", content: " " }] }, /no message with content/);
});

test("thoughts are replayed when this vendor signed them", () => {
  const content = [
    { type: "thinking", thinking: "Hm.", signature: "s" },
    { type: "redacted_thinking", data: "YQ==" },
    { type: "thinking", thinking: "Foreign.", signature: "gw1:google:x" },
    { type: "text", text: "done" },
  ];
  const printed = fromMessages({
    messages: [...ASKED, { role: "assistant", content }, { role: "user", content: "more" }],
  });
  assert.deepEqual(contentOf(printed, 1), [
    { reasoningContent: { reasoningText: { text: "Hm.", signature: "s" } } },
    { reasoningContent: { redactedContent: "YQ==" } },
    { text: "done" },
  ]);
  assert.deepEqual(printed.lost, ["messages[1].content[2]"]);
});

test("tools that the client runs for Claude are fields of the model, hosted ones are left out", () => {
  const bash = { type: "bash_20250124", name: "bash" };
  const printed = fromMessages({ messages: ASKED, tools: [bash, { type: "web_search_20250305", name: "web_search" }] });
  assert.deepEqual(printed.body["additionalModelRequestFields"], { tools: [bash] });
  assert.deepEqual(printed.lost, ["tools[1]"]);
});

test("search results keep their source", () => {
  const result = {
    type: "search_result",
    source: "https://example.com",
    title: "T",
    content: [{ type: "text", text: "x" }],
  };
  const searchResult = { source: "https://example.com", title: "T", content: [{ text: "x" }] };
  assert.deepEqual(contentOf(fromMessages(user(result))), [{ searchResult }]);
});

/** Requests of the Messages API that its service takes: turns alternate, and every call has its result. */
const MARKED = fc.option(fc.constant(MARK), { nil: {} });
const TEXT_BLOCK = fc
  .tuple(fc.string(), MARKED)
  .map(([text, mark]) => ({ type: "text", text: text === "" ? "x" : text, ...mark }));
const USER_BLOCK = fc.oneof(
  TEXT_BLOCK,
  MARKED.map((mark) => ({ type: "image", source: { type: "base64", media_type: "image/png", data: "YQ==" }, ...mark })),
  fc
    .tuple(fc.string(), fc.constantFrom("application/pdf", "text/plain", "text/csv"), MARKED)
    .map(([title, media_type, mark]) => ({
      type: "document",
      title,
      source: { type: "base64", media_type, data: "YQ==" },
      ...mark,
    })),
);
const THOUGHT = fc.constantFrom(
  { type: "thinking", thinking: "t", signature: "s" },
  { type: "redacted_thinking", data: "YQ==" },
);
const ROUND = fc.record({
  asked: fc.array(USER_BLOCK, { minLength: 1, maxLength: 3 }),
  thoughts: fc.array(THOUGHT, { maxLength: 2 }),
  said: fc.array(TEXT_BLOCK, { maxLength: 2 }),
  calls: fc.array(fc.tuple(fc.string({ minLength: 1 }), fc.array(USER_BLOCK, { maxLength: 2 }), MARKED), {
    maxLength: 3,
  }),
});

test("any request that the Messages API takes is one that Converse takes", () => {
  const settings = fc.record(
    {
      system: fc.array(TEXT_BLOCK, { maxLength: 3 }),
      temperature: fc.double({ min: 0, max: 1, noNaN: true }),
      top_k: fc.nat(100),
      stop_sequences: fc.array(fc.string(), { maxLength: 3 }),
      thinking: fc.constantFrom({ type: "enabled", budget_tokens: 1024 }, { type: "adaptive" }, { type: "disabled" }),
      tool_choice: fc.constantFrom(
        { type: "auto" },
        { type: "any" },
        { type: "none" },
        { type: "any", disable_parallel_tool_use: true },
      ),
      output_config: fc.constantFrom(
        { effort: "high" },
        { format: { type: "json_schema", schema: { type: "object" } } },
      ),
      tools: fc
        .uniqueArray(fc.string({ minLength: 1 }), { maxLength: 4 })
        .map((names) => names.map((name) => ({ ...TOOL, name, ...MARK }))),
    },
    { requiredKeys: [] },
  );
  const model = fc.constantFrom(
    CLAUDE,
    ADAPTIVE,
    "amazon.nova-pro-v1:0",
    "meta.llama3-70b-instruct-v1:0",
    "arn:aws:bedrock:us-east-1:1:application-inference-profile/x",
  );
  assertProperty(
    fc.property(fc.array(ROUND, { minLength: 1, maxLength: 3 }), settings, model, (rounds, given, name) => {
      let count = 0;
      const turns = rounds.flatMap(({ asked, thoughts, said, calls }) => {
        const used = calls.map(([tool, content, mark]) => ({ id: `call.${count++}`, tool, content, mark }));
        const answers = used.map(({ id, content, mark }) => ({
          type: "tool_result",
          tool_use_id: id,
          content,
          ...mark,
        }));
        return [
          { role: "user", content: asked },
          {
            role: "assistant",
            content: [
              ...thoughts,
              ...said,
              ...used.map(({ id, tool }) => ({ type: "tool_use", id, name: tool, input: {} })),
            ],
          },
          ...(answers.length === 0
            ? []
            : [
                { role: "user", content: answers },
                { role: "assistant", content: "ok" },
              ]),
        ];
      });
      turns.push({ role: "user", content: [{ type: "text", text: "go on" }] });
      fromMessages(JSON.parse(JSON.stringify({ ...given, messages: turns })) as JsonObject, name);
    }),
    { numRuns: 300 },
  );
});
