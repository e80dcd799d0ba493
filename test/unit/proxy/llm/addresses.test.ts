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
  type AzureService,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { type ProviderInit } from "../../../support/gateway/llm-harness.ts";
import { NO_TAGS } from "../../../../src/proxy/llm/cost/catalog.ts";
import { locate, type Call } from "../../../support/gateway/locate-call.ts";

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
  for (const model of ["..", "a/../b", "a%2fb", "a?b"])
    assert.throws(() => locate(azure({ apiVersion: "2024-10-21" }), { model }), { code: "llm_model_invalid" }, model);
  assert.throws(
    () => locate(open),
    (error) => error instanceof ProxyError && error.code === "credential_unavailable",
  );
  for (const [surface, model, formats] of [
    [AzureSurface.FOUNDRY, "claude-opus-4-1", ["Messages", "MessagesTokenCount", "Embeddings", "Rerank"]],
    [AzureSurface.FOUNDRY, "gpt-5", ["Completions", "Responses", "Embeddings", "Rerank"]],
    [AzureSurface.OPENAI, "claude-opus-4-1", ["Completions", "Responses", "Embeddings", "Rerank"]],
  ] as const) {
    const { endpoint, node } = locate(azure({ surface }));
    assert.deepEqual(endpoint.provider.formats(node, model, NO_TAGS), formats);
  }
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
