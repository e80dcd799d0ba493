/** Where Bedrock is called: host, path, signature and headers, by surface, region and model. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  BedrockEndpoint,
  BedrockServiceSchema,
  CloudACredentialSchema,
  CloudAKeysSchema,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { NO_TAGS } from "../../../../src/proxy/llm/cost/catalog.ts";
import { altFormats, surfaceOf } from "../../../../src/proxy/llm/providers/bedrock/surface.ts";
import type { Wire } from "../../../../src/proxy/llm/providers/provider.ts";
import type { ProviderInit } from "../../../support/gateway/llm-harness.ts";
import { locate } from "../../../support/gateway/locate-call.ts";

const { RUNTIME_PREFERRED, ALT_PREFERRED, RUNTIME_ONLY, ALT_ONLY } = BedrockEndpoint;
const KEYS = create(CloudACredentialSchema, {
  keys: create(CloudAKeysSchema, { accessKeyId: "AKID", secretAccessKey: "secret" }),
});

const bedrock = (endpoint: BedrockEndpoint, region = "us-east-1"): ProviderInit => {
  const service = { case: "bedrock" as const, value: create(BedrockServiceSchema, { endpoint, region }) };
  return { key: "llmh", identity: "aws.bedrock", cloudA: KEYS, service };
};

test("Bedrock: names that could steer the path are refused", () => {
  for (const model of ["..", "../../x", "a/../b", "a//b", "/a", "a/", "a?b", "a#b", "a%2fb", "a\\b"])
    for (const wire of ["Converse", "Embeddings", "MessagesTokenCount"] as const)
      assert.throws(
        () => locate(bedrock(RUNTIME_ONLY), { wire, model }),
        (error) => error instanceof ProxyError && error.code === "llm_model_invalid",
        model,
      );
});

test("Bedrock: a host, a path and a name in signatures for each surface, region and model", () => {
  const CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0";
  const ARN = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/a.b";
  for (const [endpoint, region, wire, model, streaming, url, service] of [
    [
      RUNTIME_PREFERRED,
      "eu-west-1",
      "MessagesTokenCount",
      `eu.${CLAUDE}`,
      false,
      "bedrock-runtime.eu-west-1.amazonaws.com:443/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/count-tokens",
      "bedrock",
    ],
    [
      ALT_PREFERRED,
      "eu-west-1",
      "MessagesTokenCount",
      CLAUDE,
      false,
      "bedrock-mantle.eu-west-1.api.aws:443/anthropic/v1/messages/count_tokens",
      "bedrock-mantle",
    ],
    [
      ALT_ONLY,
      "eu-west-1",
      "Embeddings",
      "amazon.titan-embed-text-v2:0",
      false,
      "bedrock-runtime.eu-west-1.amazonaws.com:443/model/amazon.titan-embed-text-v2%3A0/invoke",
      "bedrock",
    ],
    [
      ALT_ONLY,
      "eu-west-1",
      "Rerank",
      "cohere.rerank-v3-5:0",
      false,
      "bedrock-agent-runtime.eu-west-1.amazonaws.com:443/rerank",
      "bedrock",
    ],
    [
      RUNTIME_ONLY,
      "us-east-1",
      "Converse",
      CLAUDE,
      false,
      "bedrock-runtime.us-east-1.amazonaws.com:443/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse",
      "bedrock",
    ],
    [
      RUNTIME_PREFERRED,
      "eu-west-1",
      "Converse",
      ARN,
      true,
      "bedrock-runtime.eu-west-1.amazonaws.com:443/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fa.b/converse-stream",
      "bedrock",
    ],
    [
      RUNTIME_ONLY,
      "us-east-1",
      "MessagesTokenCount",
      "anthropic.claude-v2",
      false,
      "bedrock-runtime.us-east-1.amazonaws.com:443/model/anthropic.claude-v2/count-tokens",
      "bedrock",
    ],
    [
      ALT_ONLY,
      "us-west-2",
      "MessagesTokenCount",
      CLAUDE,
      false,
      "bedrock-mantle.us-west-2.api.aws:443/anthropic/v1/messages/count_tokens",
      "bedrock-mantle",
    ],
    [
      ALT_ONLY,
      "us-west-2",
      "Messages",
      CLAUDE,
      false,
      "bedrock-mantle.us-west-2.api.aws:443/anthropic/v1/messages",
      "bedrock-mantle",
    ],
    [
      ALT_ONLY,
      "us-west-2",
      "Completions",
      "qwen.qwen3-32b",
      true,
      "bedrock-mantle.us-west-2.api.aws:443/v1/chat/completions",
      "bedrock-mantle",
    ],
    [
      ALT_PREFERRED,
      "us-west-2",
      "Responses",
      "openai.gpt-oss-120b",
      true,
      "bedrock-mantle.us-west-2.api.aws:443/v1/responses",
      "bedrock-mantle",
    ],
    [
      ALT_PREFERRED,
      "us-west-2",
      "Responses",
      "openai.gpt-5",
      true,
      "bedrock-mantle.us-west-2.api.aws:443/openai/v1/responses",
      "bedrock-mantle",
    ],
  ] as const) {
    const located = locate(bedrock(endpoint, region), { wire, model, streaming });
    assert.equal(located.url, `https://${url}`);
    assert.equal(located.host, url.split(":", 1)[0]);
    const scope = new RegExp(`^AWS4-HMAC-SHA256 Credential=AKID/\\d{8}/${region}/${service}/aws4_request, `);
    assert.match(located.sent.get("authorization") ?? "", scope);
  }
});

test("Bedrock: the preference, then the name of the model tell the formats", () => {
  for (const [endpoint, models, formats] of [
    [RUNTIME_PREFERRED, "anthropic.claude-opus-4-7 us.anthropic.claude-opus-4-7", ["Converse", "MessagesTokenCount"]],
    [RUNTIME_PREFERRED, "openai.gpt-oss-20b-1:0 amazon.nova-pro-v1:0", ["Converse"]],
    [RUNTIME_PREFERRED, "arn:aws:bedrock:us-east-1:1:application-inference-profile/claude", ["Converse"]],
    [RUNTIME_PREFERRED, "openai.gpt-oss-20b-1:0 amazon.nova-pro-v1:0", ["Converse"]],
    [RUNTIME_PREFERRED, "anthropic.claude-opus-4-7", ["Converse", "MessagesTokenCount"]],
    [RUNTIME_ONLY, "openai.gpt-5", ["Converse"]],
    [ALT_PREFERRED, "anthropic.claude-opus-4-7", ["Messages", "MessagesTokenCount"]],
    [ALT_ONLY, "openai.gpt-oss-20b openai.gpt-oss-120b", ["Completions", "Responses"]],
    [ALT_ONLY, "openai.gpt-5", ["Responses"]],
    [ALT_ONLY, "cohere.embed-v4:0 amazon.titan-embed-text-v2:0", ["Embeddings"]],
    [ALT_ONLY, "cohere.rerank-v3-5:0 amazon.rerank-v1:0", ["Rerank"]],
    [ALT_ONLY, "qwen.qwen3-32b deepseek.v3-v1:0", ["Completions"]],
  ] as const) {
    const { endpoint: compiled, node } = locate(bedrock(endpoint));
    for (const model of models.split(" "))
      assert.deepEqual(compiled.provider.formats(node, model, NO_TAGS), formats, model);
  }
});

test("Bedrock: tags of the catalog win over both, except over a surface that is the only one", () => {
  const [runtime, alt, both] = [new Set(["runtime"]), new Set(["alt"]), new Set(["alt", "runtime"])];
  for (const [preference, tags, surface] of [
    [RUNTIME_PREFERRED, alt, "alt"],
    [RUNTIME_PREFERRED, both, "runtime"],
    [ALT_PREFERRED, runtime, "runtime"],
    [ALT_PREFERRED, both, "alt"],
    [RUNTIME_ONLY, alt, "runtime"],
    [ALT_ONLY, runtime, "alt"],
  ] as const)
    assert.equal(surfaceOf(preference, tags), surface);
  assert.deepEqual(altFormats("qwen.qwen3", new Set(["messages", "openai_completions"])), ["Completions", "Messages"]);
});

test("Bedrock: fields of the client's own API stay behind, and so does a signature of the client", () => {
  const headers = ["anthropic-beta", "a", "anthropic-version", "v", "x-api-key", "k", "session_id", "s"];
  headers.push("authorization", "Bearer client", "x-amz-date", "old", "x-bedrock-metadata", "{}");
  const left = (endpoint: BedrockEndpoint, wire: Wire): string[] => {
    const { sent } = locate(bedrock(endpoint), { wire, headers });
    return sent.raw.filter((_, at) => at % 2 === 0 && headers.includes(sent.raw[at] as string));
  };
  assert.deepEqual(left(RUNTIME_ONLY, "Converse"), ["session_id", "x-amz-date", "authorization"]);
  const own = ["anthropic-beta", "anthropic-version"];
  assert.deepEqual(left(ALT_ONLY, "Messages"), [...own, "session_id", "x-amz-date", "authorization"]);
  assert.deepEqual(left(ALT_ONLY, "Responses"), [...own, "x-amz-date", "authorization"]);
  const passed = [...own, "session_id", "x-bedrock-metadata", "x-amz-date", "authorization"];
  assert.deepEqual(left(RUNTIME_ONLY, "Passthrough"), passed, "what is passed through keeps them");
});
