/** Requests of LLM clients that the gateway refuses: paths of unserved formats, and bodies of the wrong shape. */

/** Paths that the clients of each API call, with the expected error format. */
export const UNSERVED: readonly (readonly [
  path: string,
  format: string,
  shape: "openai" | "anthropic" | "google",
  method?: string,
])[] = [
  ["/v1/messages/batches", "Messages", "anthropic"],
  ["/v1beta/models/g:batchGenerateContent?alt=sse", "Gemini", "google"],
  ["/v1beta/models/g:predictLongRunning", "Gemini", "google"],
];

/** A body that every provider accepts. */
export const GOOD: Readonly<Record<string, unknown>> = { model: "m", messages: [said("a")] };

/** Bodies that are invalid for every provider, with the expected part of the error message. */
export const BAD: readonly (readonly [body: unknown, path: RegExp])[] = [
  ["", /the body is not JSON/],
  ["nonsense", /the body is not JSON/],
  ['{"model":"m"', /the body is not JSON/],
  ["[]", /the body must be a JSON object/],
  ['"text"', /the body must be a JSON object/],
  ["null", /the body must be a JSON object/],
  [{ model: "m" }, /messages must be a list/],
  [{ model: "m", messages: null }, /messages must be a list/],
  [{ model: "m", messages: {} }, /messages must be a list/],
  [{ model: "m", messages: "hi" }, /messages must be a list/],
  [{ model: "m", messages: [null] }, /messages\[0\] must be an object/],
  [{ model: "m", messages: ["hi"] }, /messages\[0\] must be an object/],
  [{ model: "m", messages: [[]] }, /messages\[0\] must be an object/],
  [{ model: "m", messages: [{ content: "x" }] }, /messages\[0\]\.role must be a string/],
  [{ model: "m", messages: [{ role: 5, content: "x" }] }, /messages\[0\]\.role must be a string/],
  ...[5, true, {}, { text: "x" }].map(
    (content) =>
      [
        { model: "m", messages: [said("a"), { role: "user", content }] },
        /messages\[1\]\.content must be a string/,
      ] as const,
  ),
  ...["x", 5, null, []].map(
    (part) =>
      [{ model: "m", messages: [{ role: "user", content: [part] }] }, /messages\[0\]\.content\[0\] must be/] as const,
  ),
  ...[{}, "x", 5].map((calls) => [asked({ tool_calls: calls }), /messages\[1\]\.tool_calls must be a list/] as const),
  [asked({ tool_calls: ["x"] }), /messages\[1\]\.tool_calls\[0\] must be an object/],
  ...[{}, "x", 5, true].map((tools) => [{ ...GOOD, tools }, /tools must be a list/] as const),
  [{ ...GOOD, tools: ["x"] }, /tools\[0\] must be an object/],
  [{ ...GOOD, stream: "true" }, /stream must be a boolean/],
  [{ ...GOOD, stream: 1 }, /stream must be a boolean/],
  [{ ...GOOD, stream: true, stream_options: 5 }, /stream_options must be an object/],
  [{ ...GOOD, model: 5 }, /model must be a string/],
  [{ ...GOOD, model: {} }, /model must be a string/],
  [{ ...GOOD, model: "a\nb" }, /model must be a string/],
  [{ ...GOOD, model: "\u0000" }, /model must be a string/],
  [{ messages: [said("a")] }, /missing field: model/],
  [{ ...GOOD, model: null }, /missing field: model/],
  [{ ...GOOD, model: "" }, /missing field: model/],
  [`{"model":"m","messages":${"[".repeat(400)}${"]".repeat(400)}}`, /nested too deep/],
];

/** Bodies that a conversion between formats cannot read. */
export const UNREADABLE: readonly (readonly [body: unknown, path: RegExp])[] = [
  [{ ...GOOD, messages: [] }, /messages must not be empty/],
  [{ ...GOOD, messages: [{ role: "wizard", content: "x" }] }, /messages\[0\]\.role must be/],
  [{ ...GOOD, messages: [{ role: "user" }] }, /messages\[0\]\.content must be/],
  [{ ...GOOD, messages: [{ role: "system", content: null }] }, /messages\[0\]\.content must be/],
  ...[5, null, {}, []].map(
    (text) => [parts({ type: "text", text }), /messages\[0\]\.content\[0\]\.text must be a string/] as const,
  ),
  [parts({ text: "x" }), /messages\[0\]\.content\[0\]\.type must be a string/],
  [parts({ type: 5 }), /messages\[0\]\.content\[0\]\.type must be a string/],
  [parts({ type: "image_url" }), /messages\[0\]\.content\[0\]\.image_url must be/],
  [parts({ type: "image_url", image_url: 5 }), /content\[0\]\.image_url must be an object/],
  [parts({ type: "image_url", image_url: { url: 5 } }), /content\[0\]\.image_url\.url must be a string/],
  [parts({ type: "image_url", image_url: { url: "data:text,x" } }), /content\[0\]\.image_url\.url must be base64/],
  [asked({ tool_calls: [{ function: { name: "f" } }] }), /tool_calls\[0\]\.id must be a string/],
  [asked({ tool_calls: [{ id: 5, function: { name: "f" } }] }), /tool_calls\[0\]\.id must be a string/],
  [asked({ tool_calls: [{ id: "1" }] }), /tool_calls\[0\]\.function must be an object/],
  [asked({ tool_calls: [{ id: "1", function: [] }] }), /tool_calls\[0\]\.function must be an object/],
  [asked({ tool_calls: [{ id: "1", function: {} }] }), /tool_calls\[0\]\.function\.name must be a string/],
  [
    asked({ tool_calls: [{ id: "1", function: { name: "f", arguments: {} } }] }),
    /function\.arguments must be a string/,
  ],
  [asked({ content: [{ type: "refusal", refusal: 5 }] }), /content\[0\]\.refusal must be a string/],
  [asked({ refusal: 5 }), /messages\[1\]\.refusal must be a string/],
  [{ ...GOOD, messages: [{ role: "tool", content: "x" }] }, /messages\[0\]\.tool_call_id must be a string/],
  [{ ...GOOD, tools: [{}] }, /tools\[0\]\.type must be a string/],
  [{ ...GOOD, tools: [{ type: "function" }] }, /tools\[0\]\.function must be an object/],
  [{ ...GOOD, tools: [{ type: "function", function: {} }] }, /tools\[0\]\.function\.name must be a string/],
  [tool({ description: 5 }), /tools\[0\]\.function\.description must be a string/],
  [tool({ parameters: "{}" }), /tools\[0\]\.function\.parameters must be an object/],
  [{ ...tool({}), tool_choice: 5 }, /tool_choice must be an object/],
  [{ ...tool({}), tool_choice: "maybe" }, /tool_choice must be auto/],
  [{ ...tool({}), tool_choice: { type: "function" } }, /tool_choice\.function must be an object/],
  [{ ...tool({}), tool_choice: { type: "function", function: {} } }, /tool_choice\.function\.name must be/],
  [{ ...tool({}), parallel_tool_calls: "no" }, /parallel_tool_calls must be a boolean/],
  ...["max_tokens", "max_completion_tokens", "n", "thinking_budget_tokens"].flatMap((name) =>
    ["5", -1, 1.5, {}].map(
      (value) => [{ ...GOOD, [name]: value }, new RegExp(`${name} must be a whole number`)] as const,
    ),
  ),
  ...["temperature", "top_p"].flatMap((name) =>
    ["1", {}, true].map((value) => [{ ...GOOD, [name]: value }, new RegExp(`${name} must be a number`)] as const),
  ),
  ...["user", "reasoning_effort", "stop"].map(
    (name) => [{ ...GOOD, [name]: 5 }, new RegExp(`${name} must be a string`)] as const,
  ),
  [{ ...GOOD, stop: ["a", 5] }, /stop\[1\] must be a string/],
  [{ ...GOOD, n: 2 }, /n greater than 1/],
  [{ ...GOOD, response_format: "json" }, /response_format must be an object/],
  [{ ...GOOD, response_format: { type: 5 } }, /response_format\.type must be a string/],
  [{ ...GOOD, response_format: { type: "json_schema" } }, /response_format\.json_schema must be an object/],
  [
    { ...GOOD, response_format: { type: "json_schema", json_schema: { schema: "x" } } },
    /response_format\.json_schema\.schema must be an object/,
  ],
];

function said(content: string): object {
  return { role: "user", content };
}

function asked(assistant: object): object {
  return { model: "m", messages: [said("a"), { role: "assistant", ...assistant }] };
}

function parts(...content: readonly object[]): object {
  return { model: "m", messages: [{ role: "user", content }] };
}

function tool(members: object): Record<string, unknown> {
  return { ...GOOD, tools: [{ type: "function", function: { name: "f", ...members } }] };
}
