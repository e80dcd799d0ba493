/** The texts that guards see in requests, answers and streams of each chat format, and what masking leaves behind. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { completionsTexts } from "../../../../../src/proxy/llm/formats/completions/texts.ts";
import { geminiTexts } from "../../../../../src/proxy/llm/formats/gemini/texts.ts";
import type { FormatTexts, GuardedText } from "../../../../../src/proxy/llm/formats/guarded-text.ts";
import { messagesTexts } from "../../../../../src/proxy/llm/formats/messages/texts.ts";
import { responsesTexts } from "../../../../../src/proxy/llm/formats/responses/texts.ts";
import type { JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";

interface Case {
  readonly texts: FormatTexts;
  readonly body: JsonObject;
  /** Scope, role and text of each; a signed text ends in "!". */
  readonly expected: readonly string[];
  /** The body after every text has been masked with its number. */
  readonly masked: JsonObject;
}

const REQUESTS: Readonly<Record<string, Case>> = {
  Completions: {
    texts: completionsTexts,
    body: {
      model: "m",
      messages: [
        { role: "system", content: "sys" },
        { role: "developer", content: [text("d1"), text("d2")] },
        { role: "user", content: [text("a"), text("b"), { type: "image_url", image_url: { url: "u" } }, text("c")] },
        {
          role: "assistant",
          content: null,
          refusal: "no",
          reasoning_content: "why",
          thinking_blocks: [
            { type: "thinking", thinking: "deep", signature: "s" },
            { type: "redacted_thinking", data: "x" },
          ],
          tool_calls: [
            {
              id: "1",
              type: "function",
              function: { name: "f", arguments: '{"q": "s\\u0065cret", "n": 1, "l": ["x"]}' },
            },
            { id: "2", type: "custom", custom: { name: "c", input: "free" } },
            { id: "3", type: "function", function: { name: "f", arguments: "not json" } },
          ],
        },
        { role: "tool", tool_call_id: "1", content: "result" },
        { role: "function", name: "f", content: "old" },
      ],
    },
    expected: [
      "SystemPrompt system sys",
      "SystemPrompt developer d1\nd2",
      "Messages user a b",
      "Messages user c",
      "Messages assistant no",
      "Messages assistant why",
      "Messages assistant deep!",
      "ToolInput assistant secret",
      "ToolInput assistant x",
      "ToolInput assistant free",
      "ToolInput assistant not json",
      "ToolOutput tool result",
      "ToolOutput function old",
    ],
    masked: {
      model: "m",
      messages: [
        { role: "system", content: "0" },
        { role: "developer", content: [text("1")] },
        { role: "user", content: [text("2"), { type: "image_url", image_url: { url: "u" } }, text("3")] },
        {
          role: "assistant",
          content: null,
          refusal: "4",
          reasoning_content: "5",
          thinking_blocks: [
            { type: "thinking", thinking: "6", signature: "s" },
            { type: "redacted_thinking", data: "x" },
          ],
          tool_calls: [
            { id: "1", type: "function", function: { name: "f", arguments: '{"q": "7", "n": 1, "l": ["8"]}' } },
            { id: "2", type: "custom", custom: { name: "c", input: "9" } },
            { id: "3", type: "function", function: { name: "f", arguments: "10" } },
          ],
        },
        { role: "tool", tool_call_id: "1", content: "11" },
        { role: "function", name: "f", content: "12" },
      ],
    },
  },
  Messages: {
    texts: messagesTexts,
    body: {
      system: [text("s1"), { ...text("s2"), cache_control: { type: "ephemeral" } }],
      messages: [
        { role: "user", content: "plain" },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "deep", signature: "s" },
            { type: "redacted_thinking", data: "x" },
            text("a"),
            { type: "tool_use", id: "1", name: "f", input: { q: "in", deep: [{ r: "side" }], n: 3, b: true } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "1", content: [text("r1"), text("r2")] },
            { type: "tool_result", tool_use_id: "2", content: "r3" },
            { type: "document", title: "t", source: { type: "text", media_type: "text/plain", data: "doc" } },
            text("b"),
            text("c"),
          ],
        },
      ],
    },
    expected: [
      "SystemPrompt system s1\ns2",
      "Messages user plain",
      "Messages assistant deep!",
      "Messages assistant a",
      "ToolInput assistant in",
      "ToolInput assistant side",
      "ToolOutput user r1 r2",
      "ToolOutput user r3",
      "Messages user t",
      "Messages user doc",
      "Messages user b c",
    ],
    masked: {
      system: [{ ...text("0"), cache_control: { type: "ephemeral" } }],
      messages: [
        { role: "user", content: "1" },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "2", signature: "s" },
            { type: "redacted_thinking", data: "x" },
            text("3"),
            { type: "tool_use", id: "1", name: "f", input: { q: "4", deep: [{ r: "5" }], n: 3, b: true } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "1", content: [text("6")] },
            { type: "tool_result", tool_use_id: "2", content: "7" },
            { type: "document", title: "8", source: { type: "text", media_type: "text/plain", data: "9" } },
            text("10"),
          ],
        },
      ],
    },
  },
  Responses: {
    texts: responsesTexts,
    body: {
      instructions: "sys",
      input: [
        { role: "developer", content: [{ type: "input_text", text: "d" }] },
        {
          type: "message",
          role: "user",
          content: [
            { type: "input_text", text: "a" },
            { type: "input_image", image_url: "u" },
          ],
        },
        {
          type: "reasoning",
          id: "r",
          summary: [{ type: "summary_text", text: "why" }],
          encrypted_content: "123-45-6789",
        },
        { type: "function_call", call_id: "1", name: "f", arguments: '{"q":"in"}' },
        { type: "function_call_output", call_id: "1", output: "out" },
        { type: "function_call_output", call_id: "2", output: [{ type: "input_text", text: "part" }] },
        { type: "custom_tool_call", call_id: "3", name: "c", input: "free" },
      ],
    },
    expected: [
      "SystemPrompt system sys",
      "SystemPrompt developer d",
      "Messages user a",
      "Messages assistant why",
      "ToolInput assistant in",
      "ToolOutput tool out",
      "ToolOutput tool part",
      "ToolInput assistant free",
    ],
    masked: {
      instructions: "0",
      input: [
        { role: "developer", content: [{ type: "input_text", text: "1" }] },
        {
          type: "message",
          role: "user",
          content: [
            { type: "input_text", text: "2" },
            { type: "input_image", image_url: "u" },
          ],
        },
        {
          type: "reasoning",
          id: "r",
          summary: [{ type: "summary_text", text: "3" }],
          encrypted_content: "123-45-6789",
        },
        { type: "function_call", call_id: "1", name: "f", arguments: '{"q":"4"}' },
        { type: "function_call_output", call_id: "1", output: "5" },
        { type: "function_call_output", call_id: "2", output: [{ type: "input_text", text: "6" }] },
        { type: "custom_tool_call", call_id: "3", name: "c", input: "7" },
      ],
    },
  },
  Gemini: {
    texts: geminiTexts,
    body: {
      system_instruction: { parts: [{ text: "s1" }, { text: "s2" }] },
      contents: [
        { role: "user", parts: [{ text: "a" }, { text: "b" }, { inlineData: { data: "x" } }] },
        {
          role: "model",
          parts: [
            { text: "why", thought: true, thoughtSignature: "s" },
            { functionCall: { name: "f", args: { q: "in" } } },
          ],
        },
        { role: "user", parts: [{ functionResponse: { name: "f", response: { content: "out" } } }] },
      ],
    },
    expected: [
      "SystemPrompt system s1\ns2",
      "Messages user a b",
      "Messages assistant why!",
      "ToolInput assistant in",
      "ToolOutput user out",
    ],
    masked: {
      system_instruction: { parts: [{ text: "0" }] },
      contents: [
        { role: "user", parts: [{ text: "1" }, { inlineData: { data: "x" } }] },
        {
          role: "model",
          parts: [
            { text: "2", thought: true, thoughtSignature: "s" },
            { functionCall: { name: "f", args: { q: "3" } } },
          ],
        },
        { role: "user", parts: [{ functionResponse: { name: "f", response: { content: "4" } } }] },
      ],
    },
  },
};

const ANSWERS: Readonly<Record<string, Case>> = {
  Completions: {
    texts: completionsTexts,
    body: {
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "one",
            annotations: [{ type: "url_citation" }],
            audio: { id: "a", data: "x", transcript: "said" },
          },
          logprobs: { content: [{ token: "one" }] },
        },
        {
          index: 1,
          message: {
            role: "assistant",
            content: null,
            tool_calls: [{ function: { name: "f", arguments: '{"q":"in"}' } }],
          },
        },
      ],
    },
    expected: ["Messages assistant one", "Messages assistant said!", "ToolInput assistant in"],
    masked: {
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "0", annotations: [], audio: { id: "a", data: "x", transcript: "1" } },
          logprobs: null,
        },
        {
          index: 1,
          message: {
            role: "assistant",
            content: null,
            tool_calls: [{ function: { name: "f", arguments: '{"q":"2"}' } }],
          },
        },
      ],
    },
  },
  Messages: {
    texts: messagesTexts,
    body: { role: "assistant", content: [{ ...text("a"), citations: [{ type: "page_location" }] }, text("b")] },
    expected: ["Messages assistant a b"],
    masked: { role: "assistant", content: [{ ...text("0"), citations: [] }] },
  },
  Responses: {
    texts: responsesTexts,
    body: {
      output: [
        {
          type: "message",
          role: "assistant",
          content: [{ type: "output_text", text: "a", annotations: [{ type: "x" }] }],
        },
        { type: "function_call", arguments: '{"q":"in"}' },
      ],
    },
    expected: ["Messages assistant a", "ToolInput assistant in"],
    masked: {
      output: [
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "0", annotations: [] }] },
        { type: "function_call", arguments: '{"q":"1"}' },
      ],
    },
  },
  Gemini: {
    texts: geminiTexts,
    body: { candidates: [{ content: { parts: [{ text: "a" }] } }, { content: { parts: [{ text: "b" }] } }] },
    expected: ["Messages user a", "Messages user b"],
    masked: { candidates: [{ content: { parts: [{ text: "0" }] } }, { content: { parts: [{ text: "1" }] } }] },
  },
};

function text(value: string) {
  return { type: "text", text: value };
}

function shown({ scope, role, text: value, isSigned }: GuardedText): string {
  return `${scope} ${role} ${value}${isSigned ? "!" : ""}`;
}

function checkMasks(read: (body: JsonObject) => GuardedText[], { body, expected, masked }: Case): void {
  const before = structuredClone(body);
  const found = read(body);
  assert.deepEqual(found.map(shown), expected);
  assert.deepEqual(body, before, "reading changes nothing");
  for (const [at, each] of found.entries()) each.replace(String(at));
  assert.deepEqual(body, masked);
}

for (const [name, request] of Object.entries(REQUESTS)) {
  test(`${name}: guards see each text of a request in its scope, and a mask is written to its place`, () =>
    checkMasks((body) => request.texts.requestTexts(body), request));
}

for (const [name, answer] of Object.entries(ANSWERS)) {
  test(`${name}: guards see each text of an answer, and a mask removes what no longer fits it`, () =>
    checkMasks((body) => answer.texts.answerTexts(body), answer));
}

test("bodies of any shape have texts or none", () => {
  for (const { texts } of Object.values(REQUESTS))
    for (const value of [null, 1, "x", [], [null, 1, "x", [[]], {}], {}, { role: 1, content: { a: 1 }, parts: 3 }])
      for (const key of [
        "messages",
        "system",
        "input",
        "instructions",
        "contents",
        "choices",
        "content",
        "output",
        "candidates",
      ]) {
        const body = { [key]: value };
        for (const each of [...texts.requestTexts(body), ...texts.answerTexts(body), ...texts.answerChoices(body)])
          each.replace("masked");
        texts.streamedTexts(body);
        texts.replaceMessages(body, texts.requestMessages(body));
      }
});
