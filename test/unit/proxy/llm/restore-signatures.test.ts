import assert from "node:assert/strict";
import { test } from "node:test";
import { restoreCallIds } from "../../../../src/proxy/llm/conversation/call-id.ts";
import { mayHoldMarks, restoreSignatures } from "../../../../src/proxy/llm/conversation/restore-signatures.ts";
import type { JsonObject } from "../../../../src/proxy/llm/shared/json.ts";

const text = (words: string): JsonObject => ({ type: "text", text: words });
const thought = (signature: string): JsonObject => ({ type: "thinking", thinking: "Hm", signature });

test("a body that is passed on keeps thoughts of its own vendor, without the mark, and loses those of others", () => {
  const body: JsonObject = {
    messages: [
      { role: "user", content: [text('"gw1:google:x" is text')] },
      { role: "assistant", content: [thought("gw1:anthropic:own"), thought("gw1:google:other"), text("a")] },
      { role: "assistant", content: [{ type: "redacted_thinking", data: "gw1:openai:other" }] },
      { role: "assistant", content: [thought("native"), { type: "redacted_thinking", data: "gw1:anthropic:sealed" }] },
      { role: "user", content: [] },
    ],
  };
  assert.equal(mayHoldMarks(JSON.stringify(body)), true);
  restoreSignatures(body, "anthropic");
  assert.deepEqual(body, {
    messages: [
      { role: "user", content: [text('"gw1:google:x" is text')] },
      { role: "assistant", content: [thought("own"), text("a")] },
      { role: "assistant", content: [thought("native"), { type: "redacted_thinking", data: "sealed" }] },
      { role: "user", content: [] },
    ],
  });
});

test("a call keeps its place when another vendor signed it, and items of reasoning go", () => {
  const call = { functionCall: { name: "f", args: {} } };
  const gemini: JsonObject = {
    contents: [{ role: "model", parts: [{ ...call, thoughtSignature: "gw1:anthropic:s" }] }],
  };
  restoreSignatures(gemini, "google");
  assert.deepEqual(JSON.parse(JSON.stringify(gemini)), { contents: [{ role: "model", parts: [call] }] });
  const reasoning = (encrypted_content: string): JsonObject => ({ type: "reasoning", id: "r", encrypted_content });
  const responses: JsonObject = { input: [reasoning("gw1:anthropic:s"), reasoning("gw1:openai:own")] };
  restoreSignatures(responses, "openai");
  assert.deepEqual(responses, { input: [reasoning("own")] });
});

test("identifiers of calls lose the signature of Gemini in every format, and arguments keep theirs", () => {
  const signed = "call_1__thought__c2lnbmVk";
  const given = { id: signed };
  const body: JsonObject = {
    messages: [
      { role: "assistant", tool_calls: [{ id: signed, type: "function", function: { name: "f", arguments: "{}" } }] },
      { role: "tool", tool_call_id: signed, content: signed },
      { role: "assistant", content: [{ type: "tool_use", id: signed, name: "f", input: given }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: signed, content: [text(signed)] }] },
    ],
    input: [{ type: "function_call", call_id: signed, name: "f", arguments: "{}" }],
  };
  restoreCallIds(body);
  assert.deepEqual(body, {
    messages: [
      { role: "assistant", tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }] },
      { role: "tool", tool_call_id: "call_1", content: signed },
      { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "f", input: given }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: [text(signed)] }] },
    ],
    input: [{ type: "function_call", call_id: "call_1", name: "f", arguments: "{}" }],
  });
});
