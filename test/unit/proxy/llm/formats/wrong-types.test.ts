/**
 * Requests and answers in which one member has another type than the API says: a request gets 400, an answer 502, and
 * nothing else is thrown. What an answer consists of is never left out in silence.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ProxyError } from "../../../../../src/proxy/exchange/errors.ts";
import { Losses } from "../../../../../src/proxy/llm/conversation/losses.ts";
import type { FormatName } from "../../../../../src/proxy/llm/formats/chat-format.ts";
import { CHAT_FORMATS } from "../../../../../src/proxy/llm/formats/index.ts";
import type { JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";
import { changeEachMember } from "../../../../support/fixtures/wrong-types.ts";

const CLIENTS: readonly FormatName[] = ["Completions", "Messages", "Responses", "Gemini"];
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const IMAGE = "data:image/png;base64,iVBORw0KGgo=";

const REQUESTS: Readonly<Record<string, object>> = {
  Completions: {
    model: "m",
    stream: false,
    stream_options: { include_usage: true },
    messages: [
      { role: "system", content: "s" },
      {
        role: "user",
        content: [
          { type: "text", text: "hi" },
          { type: "image_url", image_url: { url: IMAGE } },
        ],
      },
      {
        role: "assistant",
        content: "x",
        reasoning_content: "r",
        tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: '{"city":"x"}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "ok" },
    ],
    max_completion_tokens: 100,
    temperature: 0.5,
    stop: ["a"],
    tools: [{ type: "function", function: { name: "f", description: "d", parameters: SCHEMA, strict: true } }],
    tool_choice: { type: "function", function: { name: "f" } },
    response_format: { type: "json_schema", json_schema: { name: "n", schema: SCHEMA } },
  },
  Messages: {
    model: "m",
    max_tokens: 5000,
    system: [{ type: "text", text: "s" }],
    messages: [
      { role: "user", content: [{ type: "text", text: "hi" }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "t", signature: "s" },
          { type: "tool_use", id: "c1", name: "f", input: { city: "x" } },
        ],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "ok" }], is_error: false }],
      },
    ],
    tools: [{ name: "f", description: "d", input_schema: SCHEMA }],
    tool_choice: { type: "auto", disable_parallel_tool_use: true },
    thinking: { type: "enabled", budget_tokens: 2048 },
  },
  Responses: {
    model: "m",
    instructions: "i",
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] },
      { type: "reasoning", summary: [{ type: "summary_text", text: "t" }], encrypted_content: "e" },
      { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "ok" },
    ],
    tools: [{ type: "function", name: "f", description: "d", parameters: SCHEMA, strict: true }],
    tool_choice: { type: "function", name: "f" },
    max_output_tokens: 100,
    text: { format: { type: "json_schema", name: "n", schema: SCHEMA } },
    reasoning: { effort: "low" },
  },
  Gemini: {
    systemInstruction: { parts: [{ text: "s" }] },
    contents: [
      { role: "user", parts: [{ text: "hi" }, { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }] },
      { role: "model", parts: [{ functionCall: { id: "c1", name: "f", args: { city: "x" } } }] },
      { role: "user", parts: [{ functionResponse: { id: "c1", name: "f", response: { output: "ok" } } }] },
    ],
    tools: [{ functionDeclarations: [{ name: "f", description: "d", parametersJsonSchema: SCHEMA }] }],
    generationConfig: { maxOutputTokens: 100, temperature: 0.5, stopSequences: ["a"] },
  },
};

/** Members whose wrong type has to be named, as a part of their path. */
const NAMED: Readonly<Record<string, readonly string[]>> = {
  Completions: ["messages", "messages[0].role", "messages[2].tool_calls[0].function.name", "stream", "tools[0].type"],
  Messages: ["messages[0].content[0].text", "max_tokens", "tools[0].input_schema", "thinking.budget_tokens"],
  Responses: ["input[2].call_id", "tools[0].name", "max_output_tokens", "reasoning.effort"],
  Gemini: ["contents[0].parts[0].text", "contents[1].parts[0].functionCall.name", "generationConfig.temperature"],
};

function translateRequest(body: JsonObject, client: FormatName, provider: FormatName): void {
  const { parse, client: reader } = CHAT_FORMATS[client];
  parse(body, client === "Gemini" ? "/v1beta/models/m:generateContent" : undefined);
  const conversation = reader?.readRequest(body, { model: "m", streaming: false, losses: new Losses() });
  assert.ok(conversation !== undefined);
  const printed = CHAT_FORMATS[provider].provider?.printRequest(conversation, {
    losses: new Losses(),
    tags: new Set(),
  });
  assert.ok(printed !== undefined && JSON.stringify(printed.body).length > 0);
}

for (const client of CLIENTS)
  for (const provider of [...CLIENTS, "Converse"] as const)
    if (provider !== client)
      test(`a request of ${client} with a wrong type is printed for ${provider}, or refused by name`, () => {
        const request = REQUESTS[client] ?? {};
        translateRequest(structuredClone(request) as JsonObject, client, provider); // a table of JSON
        const missed = new Set(NAMED[client]);
        for (const { path, is, value } of changeEachMember(request)) {
          try {
            translateRequest(value as JsonObject, client, provider); // a changed copy of JSON
          } catch (error) {
            assert.ok(error instanceof ProxyError, `${path} as ${is}: ${String(error)}`);
            assert.ok(error.status === 400, `${path} as ${is}: ${error.code}`);
            if (error.text.includes(path)) missed.delete(path);
          }
        }
        assert.deepEqual([...missed], []);
      });

test("a number beyond those of a double is refused, and not printed as null", () => {
  for (const [client, field] of [
    ["Completions", "temperature"],
    ["Completions", "seed"],
    ["Messages", "top_p"],
    ["Responses", "temperature"],
  ] as const) {
    const body = { ...REQUESTS[client], [field]: JSON.parse("1e400") as number };
    assert.throws(() => translateRequest(body, client, "Converse"), new RegExp(`${field} must be a number`));
  }
});

test("a text that is there in both spellings of its member is refused", () => {
  const hi = { role: "user", parts: [{ text: "hi" }] };
  const both = (name: string, other: string, value: JsonObject): JsonObject => ({ [name]: value, [other]: value });
  const bodies: Readonly<Record<string, JsonObject>> = {
    systemInstruction: { ...both("systemInstruction", "system_instruction", { parts: [] }), contents: [hi] },
    "contents[1].parts[0].functionCall": {
      contents: [hi, { role: "model", parts: [both("functionCall", "function_call", { name: "f" })] }],
    },
    "contents[0].parts[0].functionResponse": {
      contents: [{ parts: [both("functionResponse", "function_response", { name: "f" })] }],
    },
    "contents[0].parts[0].executableCode": { contents: [{ parts: [both("executableCode", "executable_code", {})] }] },
    "contents[0].parts[0].codeExecutionResult": {
      contents: [{ parts: [both("codeExecutionResult", "code_execution_result", {})] }],
    },
  };
  for (const [path, body] of Object.entries(bodies))
    assert.throws(
      () => CHAT_FORMATS.Gemini.parse(body),
      (error) => error instanceof ProxyError && error.status === 400 && error.text.includes(`: ${path} must`),
      path,
    );
});

const ANSWERS: Readonly<Record<string, object>> = {
  Completions: {
    id: "i",
    model: "m",
    choices: [
      {
        index: 0,
        finish_reason: "tool_calls",
        message: {
          role: "assistant",
          content: "x",
          refusal: "no",
          reasoning_content: "r",
          tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
        },
      },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, prompt_tokens_details: { cached_tokens: 1 } },
  },
  Messages: {
    id: "i",
    model: "m",
    content: [
      { type: "thinking", thinking: "t", signature: "s" },
      { type: "text", text: "x", citations: [{ type: "char_location", cited_text: "a" }] },
      { type: "tool_use", id: "c1", name: "f", input: { a: 1 } },
    ],
    stop_reason: "tool_use",
    usage: { input_tokens: 1, output_tokens: 2, cache_read_input_tokens: 1 },
  },
  Responses: {
    id: "i",
    status: "completed",
    model: "m",
    output: [
      { type: "reasoning", id: "r", summary: [{ type: "summary_text", text: "t" }], encrypted_content: "e" },
      { type: "message", id: "m", content: [{ type: "output_text", text: "x", annotations: [{ url: "u" }] }] },
      { type: "function_call", id: "f", call_id: "c1", name: "f", arguments: "{}" },
    ],
    usage: { input_tokens: 1, output_tokens: 2, input_tokens_details: { cached_tokens: 1 } },
  },
  Gemini: {
    responseId: "i",
    modelVersion: "m",
    candidates: [
      {
        index: 0,
        finishReason: "STOP",
        content: {
          parts: [{ text: "t", thought: true }, { text: "x" }, { functionCall: { name: "f", args: { a: 1 } } }],
        },
        citationMetadata: { citations: [{ uri: "u" }] },
      },
    ],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2 },
  },
  Converse: {
    output: {
      message: {
        content: [
          { reasoningContent: { reasoningText: { text: "t", signature: "s" } } },
          { text: "x" },
          { toolUse: { toolUseId: "c", name: "f", input: { a: 1 } } },
        ],
      },
    },
    stopReason: "tool_use",
    usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
  },
};

/** What an answer consists of: lists, their entries, texts and names of tools. */
const MEANING =
  /^(?:choices|content|output|candidates|output\.message\.content)$|\[\d+\]$|\.(?:message|content|parts|function|text|thinking|refusal|name)$/;
/** Lists of remarks, and what is reached through one. */
const REMARKS = /citation|annotation/i;

for (const [provider, answer] of Object.entries(ANSWERS))
  for (const client of CLIENTS)
    if (provider !== client)
      test(`an answer of ${provider} with a wrong type is refused or printed whole for ${client}`, () => {
        const { provider: reader } = CHAT_FORMATS[provider as FormatName]; // the table has formats of providers
        const { client: printer } = CHAT_FORMATS[client];
        for (const { path, was, is, value } of changeEachMember(answer)) {
          const label = `${path} as ${is}`;
          try {
            const read = reader?.readAnswer(value as JsonObject, { model: "m", toolNames: undefined }); // as above
            assert.ok(read !== undefined);
            JSON.stringify(printer?.printAnswer(read, { request: { model: "m" }, createdAt: 1 }));
          } catch (error) {
            assert.ok(
              error instanceof ProxyError && error.code === "llm_response_invalid",
              `${label}: ${String(error)}`,
            );
            continue;
          }
          // A content may be a list of parts as well.
          const isOther = was !== is && is !== "null" && !(path.endsWith("message.content") && is === "list");
          assert.ok(!(isOther && MEANING.test(path) && !REMARKS.test(path)), `${label} is left out in silence`);
        }
      });
