/** Where each provider is called: host, port, TLS, path, query, credential and fields, by format, model and version. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  AzureServiceSchema,
  AzureSurface,
  BedrockEndpoint,
  BedrockServiceSchema,
  CloudACredentialSchema,
  CloudAKeysSchema,
  type AzureService,
  type Provider as ProviderNode,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { compileEndpoint } from "../../../../src/proxy/llm/endpoint.ts";
import type { Wire } from "../../../../src/proxy/llm/providers/provider.ts";
import { NO_TAGS } from "../../../../src/proxy/llm/cost/catalog.ts";
import { altFormats, surfaceOf } from "../../../../src/proxy/llm/providers/bedrock/surface.ts";
import {
  aiBackend,
  fakeUpstream,
  testDeps,
  TestExchange,
  type ProviderInit,
} from "../../../support/gateway/llm-harness.ts";

interface Call {
  readonly wire?: Wire;
  readonly model?: string;
  /** Path and query of the client. */
  readonly target?: string;
  readonly headers?: readonly string[];
  readonly streaming?: boolean;
}

/** Returns where a call goes, as `scheme://host:port/path`, and its headers. */
function locate(
  provider: ProviderInit,
  { wire = "Completions", model = "m", target = "/v1/x", headers = [], streaming = false }: Call = {},
) {
  const node = aiBackend(provider).groups[0]?.providers[0] as ProviderNode; // aiBackend makes one provider
  const deps = testDeps(fakeUpstream(() => assert.fail("nothing is sent")));
  const endpoint = compileEndpoint(node, deps);
  const exchange = new TestExchange(Buffer.alloc(0), new HeaderList([...headers]));
  exchange.target = target;
  const to = { wire, model, streaming };
  const { path, headers: sent } = endpoint.address(to, exchange, undefined);
  endpoint.signer?.({ method: "POST", path, headers: sent, body: Buffer.alloc(0) }, to);
  const { target: called } = endpoint.spot(to);
  assert.ok("host" in called);
  const scheme = called.tls === undefined ? "http" : "https";
  return { url: `${scheme}://${called.host}:${called.port}${path}`, host: sent.get("host"), sent, node, endpoint };
}

const OPENAI: ProviderInit = { key: "llma", identity: "openai", credential: "sk" };
const COPILOT: ProviderInit = { key: "llmb", identity: "copilot", credential: "gho" };

test("OpenAI: the vendor's address, a prefix in place of /v1, a path with its own query", () => {
  const at = (more: ProviderInit, call?: Call): string => locate({ ...OPENAI, ...more }, call).url;
  assert.equal(at({}), "https://api.openai.com:443/v1/chat/completions");
  assert.equal(at({}, { wire: "Responses" }), "https://api.openai.com:443/v1/responses");
  assert.equal(
    at({}, { wire: "Responses", target: "/v1/responses?a=b" }),
    "https://api.openai.com:443/v1/responses?a=b",
  );
  assert.equal(at({}, { wire: "Rerank" }), "https://api.openai.com:443/v1/rerank");
  const own = { host: "models.test", port: 8080, pathPrefix: "/llm/" };
  assert.equal(at(own, { wire: "Responses", target: "/x?a=b" }), "http://models.test:8080/llm/responses?a=b");
  assert.equal(
    at({ ...own, pathPrefix: "", path: "/one?k=v" }, { target: "/x?a=b" }),
    "http://models.test:8080/one?k=v",
  );
  assert.equal(locate(OPENAI).sent.get("authorization"), "Bearer sk");
  assert.equal(locate(OPENAI).host, "api.openai.com");
});

test("Copilot: a path for each format and no base", () => {
  for (const [wire, path] of [
    ["Completions", "/chat/completions"],
    ["Responses", "/responses"],
    ["Messages", "/v1/messages"],
    ["Embeddings", "/embeddings"],
    ["Rerank", "/rerank"],
  ] as const)
    assert.equal(locate(COPILOT, { wire }).url, `https://api.githubcopilot.com:443${path}`);
  const { sent } = locate(COPILOT, { headers: ["x-initiator", "user", "anthropic-beta", "a,b"] });
  const fields = ["authorization", "content-type", "x-github-api-version", "x-initiator", "x-interaction-type"];
  assert.deepEqual(
    fields.map((name) => sent.getAll(name)),
    [["Bearer gho"], ["application/json"], ["2025-10-01"], ["agent"], ["conversation-agent"]],
  );
  assert.match(sent.get("editor-version") ?? "", /^gwproxy\/\d/);
  assert.deepEqual([sent.get("openai-intent"), sent.get("anthropic-beta")], ["conversation-agent", "a,b"]);
});

test("Copilot: the family of the model tells the formats", () => {
  const { endpoint, node } = locate(COPILOT);
  for (const [models, formats] of [
    ["claude-sonnet-4.5 Claude-Opus-4", ["Messages", "Completions"]],
    ["grok-code-fast-1 mai-1", ["Responses"]],
    ["gpt-5.4 gpt-5-mini gpt-5.4-nano", ["Completions", "Responses"]],
    ["gpt-4o gpt-4.1 gpt-3.5-turbo gemini-3-pro o3 unknown", ["Completions"]],
    ["gpt-5 gpt-5.1-codex GPT-6", ["Responses"]],
  ] as const)
    for (const model of models.split(" "))
      assert.deepEqual(endpoint.provider.formats(node, model, NO_TAGS), [...formats, "Embeddings", "Rerank"], model);
});

/** Gives the process an environment and a home folder for one test. */
function withConfiguration(context: TestContext, files: Readonly<Record<string, string>>): void {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-"));
  const before = { ...process.env };
  context.after(() => {
    process.env = before;
    rmSync(folder, { recursive: true });
  });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  process.env["XDG_CONFIG_HOME"] = folder;
  delete process.env["GH_COPILOT_TOKEN"];
  delete process.env["COPILOT_GITHUB_TOKEN"];
}

test("Copilot: without a credential the token of the user is used, wherever it lies", (context) => {
  const { credential: _, ...open } = COPILOT;
  const token = (): string | undefined =>
    locate(open, { headers: ["authorization", "Bearer client"] }).sent.get("authorization");
  withConfiguration(context, {});
  assert.throws(token, (error) => error instanceof ProxyError && error.code === "credential_unavailable");
  // Another host is not sent the token, and gets what the client presents.
  const elsewhere = locate({ ...open, host: "models.test", port: 80 }, { headers: ["authorization", "Bearer client"] });
  assert.equal(elsewhere.sent.get("authorization"), "Bearer client");
  withConfiguration(context, {
    "gh/hosts.yml":
      "other.test:\n    oauth_token: no\ngithub.com:\n    user: a\n    oauth_token: gho_command\n    git_protocol: https\n",
  });
  assert.equal(token(), "Bearer gho_command");
  withConfiguration(context, {
    "gh/hosts.yml": "github.com:\n    oauth_token: gho_command\n",
    "github-copilot/apps.json": JSON.stringify({ "github.com:Iv1.b5": { oauth_token: "gho_app" } }),
    "github-copilot/hosts.json": "nonsense",
  });
  assert.equal(token(), "Bearer gho_app");
  withConfiguration(context, {
    "github-copilot/hosts.json": JSON.stringify({ "github.com": { oauth_token: "gho_editor" } }),
  });
  assert.equal(token(), "Bearer gho_editor");
  process.env["COPILOT_GITHUB_TOKEN"] = "gho_second";
  assert.equal(token(), "Bearer gho_second");
  process.env["GH_COPILOT_TOKEN"] = "gho_first";
  assert.equal(token(), "Bearer gho_first");
});

const azure = (more: Partial<Omit<AzureService, "$typeName" | "$unknown">>, pinned = ""): ProviderInit => {
  const value = create(AzureServiceSchema, {
    surface: AzureSurface.OPENAI,
    host: "a.test",
    port: 443,
    apiVersion: "v1",
    ...more,
  });
  return { key: "llmd", identity: "azure", credential: "k", model: pinned, service: { case: "azure", value } };
};

test("Azure: a path for each form of the version, surface and format", () => {
  const FOUNDRY = { surface: AzureSurface.FOUNDRY, project: "la b" };
  for (const [service, wire, path] of [
    [{}, "Completions", "/openai/v1/chat/completions"],
    [{}, "Responses", "/openai/v1/responses"],
    [{ apiVersion: "preview" }, "Responses", "/openai/v1/responses?api-version=preview"],
    [{ apiVersion: "2024-10-21" }, "Completions", "/openai/deployments/a%2Fb/chat/completions?api-version=2024-10-21"],
    [{ apiVersion: "2024-10-21" }, "Responses", "/openai/responses?api-version=2024-10-21"],
    [FOUNDRY, "Completions", "/api/projects/la%20b/openai/v1/chat/completions"],
    [{ ...FOUNDRY, apiVersion: "2024-10-21" }, "Responses", "/api/projects/la%20b/openai/v1/responses"],
    [{ apiVersion: "2024-10-21" }, "Embeddings", "/openai/deployments/a%2Fb/embeddings?api-version=2024-10-21"],
    [FOUNDRY, "Embeddings", "/api/projects/la%20b/openai/v1/embeddings"],
    [FOUNDRY, "Rerank", "/api/projects/la%20b/openai/v1/rerank"],
    [FOUNDRY, "Messages", "/anthropic/v1/messages"],
    [FOUNDRY, "MessagesTokenCount", "/anthropic/v1/messages/count_tokens"],
  ] as const)
    assert.equal(locate(azure(service), { wire, model: "a/b" }).url, `https://a.test:443${path}`);
  const query = locate(azure({ apiVersion: "preview" }), { target: "/v1/x?a=b" }).url;
  assert.equal(query, "https://a.test:443/openai/v1/chat/completions?api-version=preview&a=b");
});

test("Azure: the endpoint's port, another host without the default, and Claude only on Foundry", () => {
  assert.equal(locate(azure({ port: 8443 })).url, "https://a.test:8443/openai/v1/chat/completions");
  assert.equal(locate(azure({ port: 8443 })).host, "a.test:8443");
  const { credential: _, ...open } = azure({});
  assert.equal(locate({ ...open, host: "own.test", port: 80 }).url, "http://own.test:80/openai/v1/chat/completions");
  assert.throws(
    () => locate(open),
    (error) => error instanceof ProxyError && error.code === "credential_unavailable",
  );
  for (const [surface, model, formats] of [
    [AzureSurface.FOUNDRY, "claude-opus-4-1", ["Messages", "MessagesTokenCount"]],
    [AzureSurface.FOUNDRY, "gpt-5", ["Completions", "Responses", "Embeddings", "Rerank"]],
    [AzureSurface.OPENAI, "claude-opus-4-1", ["Completions", "Responses", "Embeddings", "Rerank"]],
  ] as const) {
    const { endpoint, node } = locate(azure({ surface }));
    assert.deepEqual(endpoint.provider.formats(node, model, NO_TAGS), formats);
  }
});

const { RUNTIME_PREFERRED, ALT_PREFERRED, RUNTIME_ONLY, ALT_ONLY } = BedrockEndpoint;
const KEYS = create(CloudACredentialSchema, {
  keys: create(CloudAKeysSchema, { accessKeyId: "AKID", secretAccessKey: "secret" }),
});

const bedrock = (endpoint: BedrockEndpoint, region = "us-east-1"): ProviderInit => {
  const service = { case: "bedrock" as const, value: create(BedrockServiceSchema, { endpoint, region }) };
  return { key: "llmh", identity: "aws.bedrock", cloudA: KEYS, service };
};

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
});

test("models and sessions: a path for each provider, with the entry and the model in it", () => {
  const custom = { key: "custom", identity: "custom", host: "models.test", port: 80 };
  const own = { ...custom, formats: [{ type: "Realtime", path: "/live" }] };
  for (const [provider, wire, model, target, url] of [
    [OPENAI, "Models", "", "/v1/models?limit=2", "https://api.openai.com:443/v1/models?limit=2"],
    [OPENAI, "Models", "gpt-9%3Aa", "/v1/models/gpt-9%3Aa", "https://api.openai.com:443/v1/models/gpt-9%3Aa"],
    [COPILOT, "Models", "", "/v1/models", "https://api.githubcopilot.com:443/models"],
    [azure({ apiVersion: "2024-10-21" }), "Models", "", "/v1/models", "https://a.test:443/openai/v1/models"],
    [OPENAI, "Realtime", "gpt-9", "/v1/realtime?model=x&a=b", "https://api.openai.com:443/v1/realtime?model=gpt-9&a=b"],
    [azure({}), "Realtime", "a b", "/v1/realtime?model=x", "https://a.test:443/openai/v1/realtime?model=a%20b"],
    [custom, "Realtime", "m", "/v1/realtime?model=m", "http://models.test:80/v1/realtime?model=m"],
    [own, "Realtime", "m", "/v1/realtime?model=m", "http://models.test:80/live?model=m"],
    [OPENAI, "Passthrough", "", "/v1/files/a?b=c", "https://api.openai.com:443/v1/files/a?b=c"],
    [{ ...custom, pathPrefix: "/x/" }, "Passthrough", "", "/v1?b", "http://models.test:80/x?b"],
    [{ ...custom, pathPrefix: "/x" }, "Passthrough", "", "/v10/b", "http://models.test:80/x/v10/b"],
  ] as const)
    assert.equal(locate(provider, { wire, model, target }).url, url);
  const kept = locate(OPENAI, { wire: "Passthrough", headers: ["content-type", "text/plain", "te", "trailers"] }).sent;
  assert.deepEqual([kept.getAll("content-type"), kept.get("te")], [["text/plain"], undefined]);
});
