import assert from "node:assert/strict";
import { test } from "node:test";
import type { LLMProvider } from "../../../../generated/types/llm.ts";
import { AzureSurface, BedrockEndpoint } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { translateAzureEndpoint, translateAzureResource } from "../../../../src/translator/backends/llm/azure.ts";
import { translateBedrock } from "../../../../src/translator/backends/llm/bedrock.ts";
import { translateVertex } from "../../../../src/translator/backends/llm/vertex.ts";
import { translateProviderKey } from "../../../../src/translator/backends/llm/index.ts";
import type { ProviderContext, ProviderPart } from "../../../../src/translator/backends/llm/provider.ts";

const OPENAI = AzureSurface.OPENAI;
const FOUNDRY = AzureSurface.FOUNDRY;

/** A context that collects what is reported, and in which no Service exists. */
function context(): ProviderContext & { readonly errors: string[] } {
  const errors: string[] = [];
  return {
    namespace: "default",
    services: { name: "services" } as unknown as ProviderContext["services"], // only handed on to `read`
    pools: undefined,
    read: { get: () => undefined } as unknown as ProviderContext["read"],
    error: (path, message) => void errors.push(`${path}: ${message}`),
    errors,
  };
}

/** The part without the type names of messages. */
function plain(part: ProviderPart | undefined): unknown {
  return JSON.parse(JSON.stringify(part, (name, value: unknown) => (name === "$typeName" ? undefined : value)));
}

const endpoints: readonly [endpoint: string, service: object][] = [
  ["acme.openai.azure.com", { surface: OPENAI, host: "acme.openai.azure.com", port: 443, project: "" }],
  ["https://acme.openai.azure.com/", { surface: OPENAI, host: "acme.openai.azure.com", port: 443, project: "" }],
  ["HTTP://Acme.OpenAI.Azure.com/x?y#z", { surface: OPENAI, host: "Acme.OpenAI.Azure.com", port: 443, project: "" }],
  ["lab.services.ai.azure.com", { surface: FOUNDRY, host: "lab.services.ai.azure.com", port: 443, project: "lab" }],
  ["llm.corp.example:8443/v1", { surface: OPENAI, host: "llm.corp.example", port: 8443, project: "" }],
  ["10.0.0.7", { surface: OPENAI, host: "10.0.0.7", port: 443, project: "" }],
  ["https://[2001:db8::7]:8443", { surface: OPENAI, host: "2001:db8::7", port: 8443, project: "" }],
];

for (const [endpoint, service] of endpoints) {
  test(`llmc reads the endpoint ${endpoint}`, () => {
    assert.deepEqual(plain(translateAzureEndpoint({ endpoint }, context())), {
      identity: "azure",
      model: "",
      service: { case: "azure", value: { ...service, apiVersion: "v1" } },
    });
  });
}

for (const endpoint of ["", "https://", "a@b", "host:0", "host:65536", "host:port", "/path"]) {
  test(`llmc refuses the endpoint "${endpoint}"`, () => {
    const into = context();
    assert.equal(translateAzureEndpoint({ endpoint }, into), undefined);
    assert.deepEqual(into.errors, [
      `llmc.endpoint: "${endpoint}" is not a host with an optional port; write it as my-resource.openai.azure.com`,
    ]);
  });
}

const parts: readonly [name: string, part: ProviderPart | undefined, expected: object][] = [
  [
    "llmc pins its deployment",
    translateAzureEndpoint({ endpoint: "e", deploymentName: "chat", apiVersion: "2024-10-21" }, context()),
    {
      identity: "azure",
      model: "chat",
      service: {
        case: "azure",
        value: { surface: OPENAI, host: "e", port: 443, project: "", apiVersion: "2024-10-21" },
      },
    },
  ],
  [
    "llmd names the host of an OpenAI resource",
    translateAzureResource({ resourceName: "acme", resourceType: "ResA", model: "gpt-4o", apiVersion: "preview" }),
    {
      identity: "azure",
      model: "gpt-4o",
      service: {
        case: "azure",
        value: { surface: OPENAI, host: "acme.openai.azure.com", port: 443, project: "", apiVersion: "preview" },
      },
    },
  ],
  [
    "llmd names host and project of a Foundry resource",
    translateAzureResource({ resourceName: "lab", resourceType: "ResB", projectName: "alpha" }),
    {
      identity: "azure",
      model: "",
      service: {
        case: "azure",
        value: {
          surface: FOUNDRY,
          host: "lab-resource.services.ai.azure.com",
          port: 443,
          project: "alpha",
          apiVersion: "v1",
        },
      },
    },
  ],
  [
    "llmg has a default location",
    translateVertex({ projectId: "p1" }),
    { identity: "gcp.vertex_ai", model: "", service: { case: "vertex", value: { project: "p1", location: "global" } } },
  ],
  [
    "llmg keeps its region and model",
    translateVertex({ projectId: "p1", region: "europe-west4", model: "gemini-2.5-pro" }),
    {
      identity: "gcp.vertex_ai",
      model: "gemini-2.5-pro",
      service: { case: "vertex", value: { project: "p1", location: "europe-west4" } },
    },
  ],
  [
    "llmh has defaults for region and endpoint",
    translateBedrock({}),
    {
      identity: "aws.bedrock",
      model: "",
      service: { case: "bedrock", value: { region: "us-east-1", endpoint: BedrockEndpoint.RUNTIME_PREFERRED } },
    },
  ],
  [
    "llmh keeps region, guardrail, endpoint and model",
    translateBedrock({
      region: "eu-central-1",
      guardrail: { identifier: "g1", version: "3" },
      endpointPreference: "AltOnly",
      model: "m",
    }),
    {
      identity: "aws.bedrock",
      model: "m",
      service: {
        case: "bedrock",
        value: {
          region: "eu-central-1",
          guardrail: { identifier: "g1", version: "3" },
          endpoint: BedrockEndpoint.ALT_ONLY,
        },
      },
    },
  ],
];

for (const [name, part, expected] of parts) test(name, () => assert.deepEqual(plain(part), expected));

const keys: readonly [spec: LLMProvider, expected: object | string][] = [
  [{ llma: { model: "m" } }, { key: "llma", identity: "openai", model: "m" }],
  [{ llme: {} }, { key: "llme", identity: "anthropic", model: "" }],
  [
    { custom: { formats: [{ type: "Messages", path: "/m" }], providerOverride: "own" } },
    { key: "custom", identity: "own", model: "", formats: [{ type: "Messages", path: "/m" }], backend: "" },
  ],
  [
    { custom: { formats: [{ type: "Messages" }], backendRef: { name: "svc", port: 80 } } },
    "custom.backendRef: Service default/svc not found",
  ],
  [{}, ": a provider key is required"],
];

for (const [spec, expected] of keys) {
  test(`the provider ${JSON.stringify(spec)} is translated by its key`, () => {
    const into = context();
    const part = translateProviderKey(spec, into);
    if (typeof expected === "string") assert.deepEqual([part, into.errors], [undefined, [expected]]);
    else assert.deepEqual([plain(part), into.errors], [expected, []]);
  });
}
