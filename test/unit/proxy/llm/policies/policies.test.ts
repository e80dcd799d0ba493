import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { AiPolicySchema, RouteType } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { compileUnchecked } from "../../../../../src/cel/compile/compile-expression.ts";
import { environmentOf } from "../../../../../src/cel/environments/phases.ts";
import type { JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";
import { compileAiPolicies, type AiPolicies } from "../../../../../src/proxy/llm/policies/index.ts";
import type { FormatName } from "../../../../../src/proxy/llm/formats/chat-format.ts";
import type { Exchange } from "../../../../../src/proxy/exchange/exchange.ts";

function compile(policy: MessageInitShape<typeof AiPolicySchema>): AiPolicies {
  return compileAiPolicies(create(AiPolicySchema, policy), {
    expression: (source, place) => compileUnchecked(source, environmentOf(place)),
  });
}

/** An exchange of which only the roots of expressions are used. */
function exchange(): Exchange {
  const roots = new Map<string, unknown>();
  const scope = {
    setRoot: (name: string, value: unknown) => roots.set(name, value),
    root: (name: string) => roots.get(name),
  };
  return scope as unknown as Exchange; // BodyFields reads nothing else of it
}

function field(name: string, value: unknown): { field: string; valueJson: string } {
  return { field: name, valueJson: JSON.stringify(value) };
}

test("nothing is compiled that is not configured", () => {
  const names = ["findRouteType", "fields", "renameModel", "addPrompt", "markCache", "finalFields"];
  const none = Object.fromEntries(names.map((name) => [name, undefined]));
  assert.deepEqual(compileAiPolicies(undefined, { expression: () => assert.fail() }), none);
  assert.deepEqual(compile({}), none);
});

test("the longest suffix of a path tells the format", () => {
  const routes = { "*": RouteType.DETECT, "/messages": RouteType.MESSAGES, "/v1/messages": RouteType.PASSTHROUGH };
  const { findRouteType } = compile({ routes });
  const found = ["/messages", "/x/v1/messages", "/v2/messages", "/messages/", "/"].map((path) => findRouteType?.(path));
  const { DETECT, MESSAGES, PASSTHROUGH } = RouteType;
  assert.deepEqual(found, [MESSAGES, PASSTHROUGH, MESSAGES, DETECT, DETECT]);
});

test("a path that no suffix ends is of Completions", () => {
  const { findRouteType } = compile({ routes: { "/r": RouteType.RESPONSES } });
  assert.deepEqual(
    ["/r", "/x"].map((path) => findRouteType?.(path)),
    [RouteType.RESPONSES, RouteType.COMPLETIONS],
  );
});

const aliases: readonly [model: string, name: string][] = [
  ["fast", "small"],
  ["fast-2", "any-fast"],
  ["fast-2-mini", "mini"],
  ["claude-3-5-sonnet-20241022", "dated"],
  ["claude-sonnet", "claude"],
  ["FAST", "other"],
  ["a.b", "literal"],
  ["axb", "other"],
  ["small", "other"],
  ["constructor", "other"],
  ["ababab", "twice"],
  ["ab", "other"],
];

test("an exact alias wins, then the longest pattern that matches the whole name, and only once", () => {
  const { renameModel } = compile({
    modelAliases: {
      "*": "other",
      fast: "small",
      "fast*": "any-fast",
      "*-mini": "short-mini",
      "fast*-mini": "mini",
      "claude-*": "claude",
      "claude-*-sonnet-*": "dated",
      "a.b": "literal",
      "ab*ab": "twice",
    },
  });
  assert.deepEqual(
    aliases.map(([model]) => [model, renameModel?.(model)]),
    aliases,
  );
});

test("a name without an alias stays as it is", () => {
  assert.equal(compile({ modelAliases: { a: "b", "x*": "y" } }).renameModel?.("toString"), "toString");
});

const fields: readonly [name: string, policy: MessageInitShape<typeof AiPolicySchema>, body: string, result: string][] =
  [
    [
      "overrides replace, and defaults fill",
      { overrides: [field("a", 1)], defaults: [field("b", 2), field("c", 3)] },
      '{"a":0,"b":0}',
      '{"a":1,"b":0,"c":3}',
    ],
    ["null counts as set", { defaults: [field("a", 1)] }, '{"a":null}', '{"a":null}'],
    ["an override may be null", { overrides: [field("a", null)], defaults: [field("a", 1)] }, "{}", '{"a":null}'],
    [
      "a transformation beats an override",
      { overrides: [field("a", 1)], transformations: [{ field: "a", expression: "2" }] },
      "{}",
      '{"a":2}',
    ],
    [
      "a transformation that fails removes its field, also one that an override set",
      {
        overrides: [field("a", 1)],
        transformations: [
          { field: "a", expression: "llmRequest.missing" },
          { field: "b", expression: "llmRequest.b / 0" },
        ],
      },
      '{"b":1,"c":2}',
      '{"c":2}',
    ],
    [
      "a transformation that is null removes its field, and a default fills it",
      { transformations: [{ field: "a", expression: "null" }], defaults: [field("a", "d")] },
      '{"a":1}',
      '{"a":"d"}',
    ],
    [
      "all transformations see the body of the client",
      {
        overrides: [field("a", 10)],
        transformations: [
          { field: "b", expression: "llmRequest.a + 1" },
          { field: "c", expression: "llmRequest.b + 1" },
        ],
      },
      '{"a":1,"b":2}',
      '{"a":10,"b":2,"c":3}',
    ],
    [
      "the last of several entries for a field counts",
      {
        overrides: [field("a", 1), field("a", 2)],
        defaults: [field("b", 1), field("b", 2)],
        transformations: [
          { field: "c", expression: "1" },
          { field: "c", expression: "2" },
        ],
      },
      "{}",
      '{"a":2,"c":2,"b":2}',
    ],
    ["dots are part of the name", { overrides: [field("a.b", 1)] }, '{"a":{}}', '{"a":{},"a.b":1}'],
    [
      "values of every kind are written",
      {
        transformations: [
          { field: "list", expression: "llmRequest.stop + ['b']" },
          { field: "map", expression: "{'x': 1.5, 'y': true}" },
          { field: "text", expression: "'a' + llmRequest.stop[0]" },
        ],
      },
      '{"stop":["a"]}',
      '{"stop":["a"],"list":["a","b"],"map":{"x":1.5,"y":true},"text":"aa"}',
    ],
    [
      "names of members that objects inherit are fields like any other",
      { defaults: [field("constructor", 1), field("__proto__", 2)], overrides: [field("toString", 3)] },
      "{}",
      '{"toString":3,"constructor":1,"__proto__":2}',
    ],
  ];

for (const [name, policy, body, result] of fields) {
  test(name, () => {
    const object = JSON.parse(body) as JsonObject;
    compile(policy).fields?.apply(object, exchange());
    assert.equal(JSON.stringify(object), result);
  });
}

test("a list of the configuration is a new one in each request", () => {
  const policies = compile({ overrides: [field("messages", [{ role: "user" }])] });
  const [one, two] = [{}, {}] as [JsonObject, JsonObject];
  policies.fields?.apply(one, exchange());
  (one["messages"] as unknown[]).push("more");
  policies.fields?.apply(two, exchange());
  assert.deepEqual(two, { messages: [{ role: "user" }] });
});

const PROMPT = {
  prepend: [
    { role: "system", content: "S1" },
    { role: "user", content: "U1" },
  ],
  append: [
    { role: "assistant", content: "A2" },
    { role: "system", content: "S2" },
  ],
};
const SYSTEM = { prepend: [{ role: "system", content: "S1" }] };
const USER = { append: [{ role: "user", content: "U2" }] };

const prompts: readonly [format: FormatName, prompt: object, body: object, result: object | string][] = [
  [
    "Completions",
    PROMPT,
    { messages: [{ role: "user", content: "hi" }] },
    {
      messages: [
        { role: "system", content: "S1" },
        { role: "user", content: "U1" },
        { role: "user", content: "hi" },
        { role: "assistant", content: "A2" },
        { role: "system", content: "S2" },
      ],
    },
  ],
  ["Completions", USER, { messages: "hi" }, "messages must be a list"],
  [
    "Messages",
    PROMPT,
    { system: "own", messages: [{ role: "user", content: "hi" }] },
    {
      system: "S1\nown\nS2",
      messages: [
        { role: "user", content: "U1" },
        { role: "user", content: "hi" },
        { role: "assistant", content: "A2" },
      ],
    },
  ],
  [
    "Messages",
    PROMPT,
    { system: [{ type: "text", text: "own", cache_control: { type: "ephemeral" } }], messages: [] },
    {
      system: [
        { type: "text", text: "S1" },
        { type: "text", text: "own", cache_control: { type: "ephemeral" } },
        { type: "text", text: "S2" },
      ],
      messages: [
        { role: "user", content: "U1" },
        { role: "assistant", content: "A2" },
      ],
    },
  ],
  ["Messages", SYSTEM, { messages: [] }, { messages: [], system: "S1" }],
  ["Messages", USER, { messages: [] }, { messages: [{ role: "user", content: "U2" }] }],
  ["Messages", SYSTEM, { system: 1, messages: [] }, "system must be a string or a list of blocks"],
  ["Messages", USER, {}, "messages must be a list"],
  [
    "Responses",
    PROMPT,
    { instructions: "own", input: "hi" },
    {
      instructions: "S1\nown\nS2",
      input: [
        { role: "user", content: "U1" },
        { role: "user", content: "hi" },
        { role: "assistant", content: "A2" },
      ],
    },
  ],
  ["Responses", SYSTEM, { input: "hi" }, { input: "hi", instructions: "S1" }],
  [
    "Responses",
    USER,
    { instructions: null, input: [{ type: "item_reference", id: "i" }] },
    {
      instructions: null,
      input: [
        { type: "item_reference", id: "i" },
        { role: "user", content: "U2" },
      ],
    },
  ],
  ["Responses", USER, {}, { input: [{ role: "user", content: "U2" }] }],
  ["Responses", USER, { input: 1 }, "input must be a list"],
  ["Responses", SYSTEM, { instructions: ["x"] }, "instructions must be a string"],
  [
    "Gemini",
    PROMPT,
    { systemInstruction: { role: "system", parts: [{ text: "own" }] }, contents: [{ parts: [{ text: "hi" }] }] },
    {
      systemInstruction: { role: "system", parts: [{ text: "S1" }, { text: "own" }, { text: "S2" }] },
      contents: [
        { role: "user", parts: [{ text: "U1" }] },
        { parts: [{ text: "hi" }] },
        { role: "model", parts: [{ text: "A2" }] },
      ],
    },
  ],
  [
    "Gemini",
    SYSTEM,
    { system_instruction: { parts: [] }, contents: [] },
    { system_instruction: { parts: [{ text: "S1" }] }, contents: [] },
  ],
  ["Gemini", SYSTEM, { contents: [] }, { contents: [], systemInstruction: { parts: [{ text: "S1" }] } }],
  ["Gemini", SYSTEM, { systemInstruction: "x", contents: [] }, "systemInstruction must be an object"],
  ["Gemini", USER, {}, "contents must be a list"],
];

for (const [format, prompt, body, result] of prompts) {
  test(`a prompt is added to a ${format} body: ${JSON.stringify(body)}`, () => {
    const object = structuredClone(body) as JsonObject;
    const add = (): void => compile({ prompt }).addPrompt?.(object, format);
    if (typeof result === "string") assert.throws(add, { text: `failed to process LLM request: ${result}` });
    else {
      add();
      assert.deepEqual(object, result);
    }
  });
}
