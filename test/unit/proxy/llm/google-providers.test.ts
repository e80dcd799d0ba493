/** Addresses, credentials, bodies and counts of the providers of Google, for every form of region and of model name. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { NO_TAGS } from "../../../../src/proxy/llm/cost/catalog.ts";
import { Losses } from "../../../../src/proxy/llm/conversation/losses.ts";
import { create } from "@bufbuild/protobuf";
import { ProviderSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import type { FormatName } from "../../../../src/proxy/llm/formats/chat-format.ts";
import type { JsonObject } from "../../../../src/proxy/llm/shared/json.ts";
import { gemini as geminiFormat } from "../../../../src/proxy/llm/formats/gemini/index.ts";
import { paramsOf } from "../../../../src/proxy/llm/params.ts";
import { findGeminiFault } from "../../../support/servers/llm/gemini-checks.ts";
import { gemini } from "../../../../src/proxy/llm/providers/gemini/index.ts";
import { vertex } from "../../../../src/proxy/llm/providers/vertex/index.ts";

/** What the providers of Google do not read of a call. */
const BODY = { streaming: false, headers: new HeaderList(), losses: new Losses() } as const;

const GEMINI = create(ProviderSchema, { key: "llmf" });

function vertexNode(location: string, project = "p-1"): ReturnType<typeof create<typeof ProviderSchema>> {
  return create(ProviderSchema, { key: "llmg", service: { case: "vertex", value: { project, location } } });
}

test("llmf has one host, native paths by collection, and one path that is compatible", () => {
  assert.equal(gemini.defaultHost(GEMINI), "generativelanguage.googleapis.com");
  const rows: readonly [model: string, wire: FormatName, streaming: boolean, path: string][] = [
    ["gemini-2.5-pro", "Gemini", false, "/v1beta/models/gemini-2.5-pro:generateContent"],
    ["gemini-2.5-pro", "Gemini", true, "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"],
    ["models/gemini-2.5-pro", "Gemini", false, "/v1beta/models/gemini-2.5-pro:generateContent"],
    ["tunedModels/mine", "Gemini", false, "/v1beta/tunedModels/mine:generateContent"],
    ["größe", "Gemini", false, "/v1beta/models/gr%C3%B6%C3%9Fe:generateContent"],
    ["a:b&c", "Gemini", false, "/v1beta/models/a%3Ab%26c:generateContent"],
    ["tunedModels/mine", "GeminiTokenCount", false, "/v1beta/tunedModels/mine:countTokens"],
    ["../x", "Completions", true, "/v1beta/openai/chat/completions"],
  ];
  for (const [model, wire, streaming, path] of rows)
    assert.equal(gemini.path(GEMINI, { model, wire, streaming }), path, model);
});

const UNSAFE = [
  "",
  ".",
  "..",
  "../x",
  "a/b",
  "a\\b",
  "a%2fb",
  "a?b",
  "a#b",
  "a<b",
  'a"b',
  "a{b",
  "a|b",
  "a^b",
  "a`b",
  "a b",
  "a\nb",
];

test("names that could steer a path are refused", () => {
  for (const model of [...UNSAFE, "models/..", "tunedModels/a/b", "models/"])
    assert.throws(
      () => gemini.path(GEMINI, { model, wire: "Gemini", streaming: false }),
      { code: "llm_model_invalid" },
      model,
    );
});

interface KeyRow {
  readonly wire: FormatName;
  readonly sent: readonly string[];
  readonly location?: string;
  readonly expected: readonly string[];
}

test("llmf takes API keys in x-goog-api-key on native paths alone, and never two credentials", () => {
  const rows: readonly KeyRow[] = [
    { wire: "Gemini", sent: ["authorization", "Bearer AIzaX"], expected: ["x-goog-api-key", "AIzaX"] },
    { wire: "Completions", sent: ["authorization", "Bearer AIzaX"], expected: ["authorization", "Bearer AIzaX"] },
    { wire: "Gemini", sent: ["authorization", "Bearer ya29.t"], expected: ["authorization", "Bearer ya29.t"] },
    {
      wire: "Gemini",
      sent: ["x-goog-api-key", "of-the-client", "authorization", "Bearer ya29.t"],
      expected: ["authorization", "Bearer ya29.t"],
    },
    {
      wire: "Gemini",
      sent: ["x-goog-api-key", "of-the-client", "authorization", "Bearer AIzaX"],
      expected: ["x-goog-api-key", "AIzaX"],
    },
    { wire: "Gemini", sent: ["x-goog-api-key", "of-the-client"], expected: ["x-goog-api-key", "of-the-client"] },
    {
      wire: "Gemini",
      sent: ["authorization", "Bearer AIzaX"],
      location: "authorization",
      expected: ["authorization", "Bearer AIzaX"],
    },
    {
      wire: "Gemini",
      sent: ["x-goog-api-key", "AIzaX", "authorization", "Bearer of-the-client"],
      location: "x-goog-api-key",
      expected: ["x-goog-api-key", "AIzaX"],
    },
  ];
  for (const { wire, sent, location, expected } of rows) {
    const headers = new HeaderList([...sent]);
    gemini.headers?.(
      headers,
      { wire, model: "m", streaming: false, credentialHeader: location, usesDefaultCredential: false },
      GEMINI,
    );
    assert.deepEqual(headers.raw, expected, `${wire} ${sent.join(" ")}`);
  }
});

test("llmg has a host for each form of region", () => {
  const rows: readonly [location: string, host: string][] = [
    ["global", "aiplatform.googleapis.com"],
    ["us", "aiplatform.us.rep.googleapis.com"],
    ["eu", "aiplatform.eu.rep.googleapis.com"],
    ["europe-west4", "europe-west4-aiplatform.googleapis.com"],
    ["us-east5", "us-east5-aiplatform.googleapis.com"],
  ];
  for (const [location, host] of rows) {
    const node = vertexNode(location);
    assert.equal(vertex.defaultHost(node), host);
    assert.equal(vertex.host?.(node, { wire: "Gemini", model: "gemini-x", streaming: false }), host);
    const rank = { wire: "Rerank", model: "semantic-ranker-512@latest", streaming: false } as const;
    assert.equal(vertex.host?.(node, rank), "discoveryengine.googleapis.com");
    const path = "/v1/projects/p-1/locations/global/rankingConfigs/default_ranking_config:rank";
    assert.equal(vertex.path(node, rank), path);
  }
});

test("llmg tells the families of models by their names, and no name steers the path", () => {
  const node = vertexNode("eu");
  const base = "/v1/projects/p-1/locations/eu";
  const claude = (name: string): readonly [string, FormatName, string] => [
    `${base}/publishers/anthropic/models/${name}:rawPredict`,
    "Messages",
    `${base}/publishers/anthropic/models/${name}:streamRawPredict`,
  ];
  const google = (name: string): readonly [string, FormatName, string] => [
    `${base}/publishers/google/models/${name}:generateContent`,
    "Gemini",
    `${base}/publishers/google/models/${name}:streamGenerateContent?alt=sse`,
  ];
  const other = [
    `${base}/endpoints/openapi/chat/completions`,
    "Completions",
    `${base}/endpoints/openapi/chat/completions`,
  ] as const;
  const rows: readonly [model: string, readonly [string, FormatName, string]][] = [
    ["claude-sonnet-4-5@20250929", claude("claude-sonnet-4-5@20250929")],
    ["claude-sonnet-4-5-20250929", claude("claude-sonnet-4-5@20250929")],
    ["anthropic/claude-opus-4-1", claude("claude-opus-4-1")],
    ["publishers/anthropic/models/claude-opus-4-1-20250805", claude("claude-opus-4-1@20250805")],
    ["gemini-2.5-pro", google("gemini-2.5-pro")],
    ["gemini@001", google("gemini@001")],
    ["google/gemini-2.5-pro", google("gemini-2.5-pro")],
    ["models/gemini-2.5-pro", google("gemini-2.5-pro")],
    ["publishers/google/models/gemini-2.5-pro", google("gemini-2.5-pro")],
    ["gemini-embedding-001", other],
    ["google/gemma-3", other],
    ["meta/llama-4-maverick", other],
    ["geminix", other],
    ["anthropic/../../x", other],
    ["claude-x/../../../publishers/google/models/y", other],
    ["gemini-2.5-pro:predict?x=", other],
    ["gemini-%2e%2e", other],
    ["anthropic/", other],
  ];
  for (const [model, [whole, wire, streamed]] of rows) {
    assert.equal(vertex.formats(node, model, NO_TAGS)[0], wire, model);
    assert.equal(vertex.path(node, { model, wire, streaming: false }), whole, model);
    assert.equal(vertex.path(node, { model, wire, streaming: true }), streamed, model);
  }
});

test("llmg gets the body of Claude with its version, and without model, output_format and scopes of the cache", () => {
  const mark = (): JsonObject => ({ type: "ephemeral", scope: "org" });
  const body: JsonObject = {
    model: "claude-x",
    output_format: { type: "json_schema" },
    system: [{ type: "text", text: "s", cache_control: mark() }],
    tools: [{ name: "t", input_schema: { properties: { cache_control: { scope: "kept" } } }, cache_control: mark() }],
    messages: [
      {
        role: "user",
        content: [
          { type: "tool_result", content: [{ type: "text", text: "r", cache_control: mark() }], cache_control: mark() },
        ],
      },
      { role: "assistant", content: "text" },
    ],
    cache_control: mark(),
  };
  vertex.adjustBody?.(body, { ...BODY, wire: "Messages", model: "claude-x" }, vertexNode("eu"));
  const plain = { type: "ephemeral" };
  assert.deepEqual(JSON.parse(JSON.stringify(body)), {
    system: [{ type: "text", text: "s", cache_control: plain }],
    tools: [{ name: "t", input_schema: { properties: { cache_control: { scope: "kept" } } }, cache_control: plain }],
    messages: [
      {
        role: "user",
        content: [
          { type: "tool_result", content: [{ type: "text", text: "r", cache_control: plain }], cache_control: plain },
        ],
      },
      { role: "assistant", content: "text" },
    ],
    cache_control: plain,
    anthropic_version: "vertex-2023-10-16",
  });
});

test("the compatible path of llmg gets Gemini models with their publisher", () => {
  const nameOf = (model: string): unknown => {
    const body: JsonObject = { model };
    vertex.adjustBody?.(body, { ...BODY, wire: "Completions", model }, vertexNode("eu"));
    return body["model"];
  };
  assert.equal(nameOf("gemini-2.5-pro"), "google/gemini-2.5-pro");
  assert.equal(nameOf("publishers/google/models/gemini-2.5-pro"), "google/gemini-2.5-pro");
  assert.equal(nameOf("meta/llama-4"), "meta/llama-4");
});

test("what is printed for clients of other formats passes the checks of the service", () => {
  const folder = join(import.meta.dirname, "../../../golden/llm/completions-to-gemini");
  const requests = readdirSync(folder).flatMap((file) => {
    const { request } = JSON.parse(readFileSync(join(folder, file), "utf8")) as {
      request?: { input: { model: string }; output: JsonObject };
    };
    return request === undefined ? [] : [{ file, ...request }];
  });
  assert.ok(requests.length > 10);
  for (const { file, input, output } of requests) assert.equal(findGeminiFault(output, input.model), undefined, file);
});

test("usage counts thoughts with the answer, tools with the prompt, and kinds of media apart", () => {
  const details = (text: number, image: number): JsonObject[] => [
    { modality: "TEXT", tokenCount: text },
    { modality: "IMAGE", tokenCount: image },
    { modality: "VIDEO", tokenCount: 9 },
  ];
  const usageMetadata = {
    promptTokenCount: 100,
    toolUsePromptTokenCount: 7,
    cachedContentTokenCount: 40,
    candidatesTokenCount: 20,
    thoughtsTokenCount: 5,
    totalTokenCount: 132,
    promptTokensDetails: details(60, 40),
    candidatesTokensDetails: [{ modality: "AUDIO", tokenCount: 20 }],
    trafficType: "PROVISIONED_THROUGHPUT",
  };
  assert.deepEqual(geminiFormat.usage({ candidates: [], modelVersion: "g-1", usageMetadata }), {
    model: "g-1",
    serviceTier: "PROVISIONED_THROUGHPUT",
    usage: {
      inputTokens: 107,
      outputTokens: 25,
      cachedInputTokens: 40,
      reasoningTokens: 5,
      inputTextTokens: 60,
      inputImageTokens: 40,
      outputAudioTokens: 20,
      providerInputTokens: 100,
      providerTotalTokens: 132,
    },
  });
  assert.deepEqual(geminiFormat.usage({ usageMetadata: { promptTokenCount: "x", totalTokenCount: -1 } }), {});
});

test("settings of a Gemini request are shown to expressions under the usual names", () => {
  const { params } = paramsOf({
    generationConfig: { temperature: 1, topP: 0.5, seed: 7, maxOutputTokens: 9, topK: 3 },
  });
  assert.deepEqual(Object.keys(params ?? {}), ["temperature", "top_p", "seed", "max_tokens"]);
  assert.deepEqual([params?.["seed"], params?.["max_tokens"]], [7, 9]);
});
