/**
 * Token counts by the official clients through the whole gateway: passed on to providers that count, and answered by the
 * gateway for others.
 */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import { call } from "../../support/clients/http.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { BEDROCK_API_KEY, startBedrock } from "../../support/servers/llm/bedrock.ts";

const BEDROCK_MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0";

interface Seen {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

/** A provider that counts 42 tokens in any prompt, or answers an error. */
interface Provider {
  readonly port: number;
  readonly seen: Seen[];
  error: { readonly status: number; readonly body: object } | undefined;
}

async function startProvider(context: Pick<ProofContext, "after">): Promise<Provider> {
  const provider: Provider & { port: number } = { port: 0, seen: [], error: undefined };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { url = "", headers } = request;
      provider.seen.push({ url, headers, body: JSON.parse(Buffer.concat(chunks).toString()) as Seen["body"] });
      const { status, body } = provider.error ?? { status: 200, body: COUNTS[url.split(/[/:]/).at(-1) ?? ""] ?? {} };
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  provider.port = (server.address() as AddressInfo).port; // it listens on a port
  return provider;
}

const COUNTS: Readonly<Record<string, object>> = {
  count_tokens: { input_tokens: 42 },
  rawPredict: { input_tokens: 42 },
  countTokens: { totalTokens: 42 },
};

interface Setup {
  readonly provider: Provider;
  readonly gateway: TestGateway;
}

/** @param settings the provider's key as YAML flow @param policies members of `policies` beside the credential */
async function serve(
  context: ProofContext,
  settings: string,
  policies = "",
  more: readonly string[] = [],
): Promise<Setup> {
  const provider = await startProvider(context);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {${settings}, host: 127.0.0.1, port: ${provider.port}}}
  policies: {auth: {key: the-key}${policies}}
`;
  return { provider, gateway: await startGateway(context, documents(GATEWAY, backend, route("ai", "ai"), ...more)) };
}

function anthropic({ gateway }: Setup): Anthropic {
  return new Anthropic({ apiKey: "of-the-client", baseURL: gateway.url(), maxRetries: 0 });
}

function google({ gateway }: Setup): GoogleGenAI {
  return new GoogleGenAI({ apiKey: "of-the-client", httpOptions: { baseUrl: gateway.url() } });
}

const PROMPT = {
  model: "claude-sonnet-4-5",
  system: "Be brief.",
  messages: [{ role: "user" as const, content: "2 + 2 = 4" }],
};

const FORWARDED = [
  { provider: "llme: {}", path: "/v1/messages/count_tokens", key: "x-api-key", value: "the-key" },
  {
    provider: "llmd: {resourceName: r, resourceType: ResB, projectName: p}",
    path: "/anthropic/v1/messages/count_tokens",
  },
  {
    provider: "llmg: {projectId: p, region: eu}",
    path: "/v1/projects/p/locations/eu/publishers/anthropic/models/count-tokens:rawPredict",
    body: { ...PROMPT, anthropic_version: "vertex-2023-10-16" },
  },
  { provider: "custom: {formats: [{type: MessagesTokenCount}]}", path: "/v1/messages/count_tokens" },
  { provider: "custom: {formats: [{type: MessagesTokenCount, path: /count}]}", path: "/count", tokens: undefined },
] as const;

for (const { provider: settings, path, ...expected } of FORWARDED)
  prove([], `a count of a Messages client goes to a provider that counts (${settings})`, async (context) => {
    const setup = await serve(context, settings);
    const { input_tokens: tokens } = await anthropic(setup).messages.countTokens(PROMPT);
    assert.equal(tokens, "tokens" in expected ? undefined : 42);
    const [sent] = setup.provider.seen;
    assert.equal(sent?.url, path);
    assert.deepEqual(sent.body, "body" in expected ? expected.body : PROMPT);
    const { key = "authorization", value = "Bearer the-key" } = "key" in expected ? expected : {};
    assert.equal(sent.headers[key], value);
    setup.provider.error = { status: 429, body: { type: "error", error: { type: "rate_limit_error", message: "m" } } };
    await assert.rejects(anthropic(setup).messages.countTokens(PROMPT), Anthropic.RateLimitError);
  });

prove([], "a count whose client names no version of the API gets one", async (context) => {
  for (const settings of ["llme: {}", "llmd: {resourceName: r, resourceType: ResB, projectName: p}"]) {
    const { gateway, provider } = await serve(context, settings);
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify(PROMPT);
    await call(`${gateway.url()}/v1/messages/count_tokens`, { method: "POST", headers, body });
    assert.equal(provider.seen[0]?.headers["anthropic-version"], "2023-06-01");
  }
});

/** Two messages of four tokens and an answer of three around the texts, which have seven and three. */
const PROMPT_TOKENS = 2 * 4 + 3 + 7 + 3;

for (const settings of [
  "llma: {}",
  "llmb: {}",
  "llmd: {resourceName: r, resourceType: ResA}",
  "llmf: {}",
  "llmg: {projectId: p, model: gemini-2.5-pro}",
  "llmh: {model: amazon.nova-pro-v1:0}",
  "custom: {formats: [{type: Completions}]}",
])
  prove([], `the gateway counts for a provider that does not (${settings})`, async (context) => {
    const setup = await serve(context, settings);
    const count = (more: object): Promise<{ input_tokens: number }> =>
      anthropic(setup).messages.countTokens({ ...PROMPT, ...more });
    assert.deepEqual(await count({}), { input_tokens: PROMPT_TOKENS });
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };
    const { input_tokens: more } = await count({
      messages: [
        ...PROMPT.messages,
        { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: { city: "Rome" } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [image] }, image] },
      ],
      tools: [{ name: "f", description: "The weather of a city.", input_schema: { type: "object" } }],
    });
    assert.ok(more > PROMPT_TOKENS + 2000 + 20 && more < PROMPT_TOKENS + 2000 + 60, `${more}`);
    assert.equal(setup.provider.seen.length, 0);
    await assert.rejects(count({ messages: "hi" }), (error) => {
      assert.ok(error instanceof Anthropic.BadRequestError);
      assert.match(error.message, /messages must be a list/);
      return true;
    });
  });

prove(
  [],
  "a count for Claude on Bedrock is asked as the body of a call, and one on Alt as it came",
  async (context) => {
    const bedrock = await startBedrock(context);
    const gatewayFor = (settings: string): Promise<TestGateway> =>
      startGateway(
        context,
        documents(
          GATEWAY,
          `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {${settings}, host: 127.0.0.1, port: ${bedrock.port}}}
  policies: {auth: {key: ${BEDROCK_API_KEY}}}
`,
          route("ai", "ai"),
        ),
      );
    const gateway = await gatewayFor(`llmh: {model: "eu.${BEDROCK_MODEL}"}`);
    const client = new Anthropic({ apiKey: "of-the-client", baseURL: gateway.url(), maxRetries: 0 });
    assert.deepEqual(await client.messages.countTokens(PROMPT), { input_tokens: 42 });
    const [sent] = bedrock.seen;
    assert.equal(sent?.url, `/model/${encodeURIComponent(BEDROCK_MODEL)}/count-tokens`);
    const { input } = sent.body as { input: { invokeModel: { body: string } } }; // the strict server has checked it
    const { model: _, ...prompt } = PROMPT;
    assert.deepEqual(JSON.parse(Buffer.from(input.invokeModel.body, "base64").toString()), {
      ...prompt,
      max_tokens: 1,
      anthropic_version: "bedrock-2023-05-31",
    });
    bedrock.answer = { error: { status: 429, type: "ThrottlingException", message: "slow down" } };
    await assert.rejects(client.messages.countTokens(PROMPT), (error) => {
      assert.ok(error instanceof Anthropic.RateLimitError);
      assert.deepEqual(error.error, { type: "error", error: { type: "rate_limit_error", message: "slow down" } });
      return true;
    });

    const alt = await serve(context, `llmh: {model: anthropic.claude-opus-4-7, endpointPreference: AltOnly}`);
    assert.deepEqual(await anthropic(alt).messages.countTokens(PROMPT), { input_tokens: 42 });
    assert.equal(alt.provider.seen[0]?.url, "/anthropic/v1/messages/count_tokens");
    assert.deepEqual(alt.provider.seen[0].body, { ...PROMPT, model: "anthropic.claude-opus-4-7" });
  },
);

prove([], "aliases and prompts apply to counts, guards and budgets of tokens do not", async (context) => {
  const ai =
    `, ai: {modelAliases: {alias: gpt-5}, prompt: {prepend: [{role: system, content: "2 + 2 = 4"}]}, ` +
    "promptGuard: {request: [{regex: {matches: ['.'], action: Reject}}]}}";
  const limits = routePolicy(
    "limits",
    "ai",
    "  traffic: {rateLimit: {local: [{tokens: 1, unit: Hours}]}, transformation: {response: {set: " +
      "[{name: x-count, value: string(llm.countTokens)}, {name: x-model, value: llm.requestModel}]}}}",
  );
  for (const [settings, tokens] of [
    ["llma: {}", 2 * 4 + 3 + 7 + 7],
    ["llme: {}", 42],
  ] as const) {
    const setup = await serve(context, settings, ai, [limits]);
    const prompt = { model: "alias", messages: PROMPT.messages };
    for (let times = 0; times < 3; times++) {
      const { data, response } = await anthropic(setup).messages.countTokens(prompt).withResponse();
      assert.equal(data.input_tokens, tokens);
      assert.deepEqual([response.headers.get("x-count"), response.headers.get("x-model")], [String(tokens), "gpt-5"]);
    }
    if (tokens === 42) {
      const { model, system } = setup.provider.seen[0]?.body ?? {};
      assert.deepEqual([model, system], ["gpt-5", "2 + 2 = 4"]);
    }
  }
});

const CONTENTS = [{ role: "user", parts: [{ text: "2 + 2 = 4" }] }];

prove([], "a count of a Gemini client goes to Google, or is made by the gateway", async (context) => {
  const gemini = await serve(context, "llmf: {}", ', ai: {prompt: {prepend: [{role: system, content: "Be brief."}]}}');
  const { totalTokens } = await google(gemini).models.countTokens({ model: "gemini-2.5-pro", contents: CONTENTS });
  assert.equal(totalTokens, 42);
  const [sent] = gemini.provider.seen;
  assert.equal(sent?.url, "/v1beta/models/gemini-2.5-pro:countTokens");
  const systemInstruction = { parts: [{ text: "Be brief." }] };
  const wrapped = { model: "models/gemini-2.5-pro", contents: CONTENTS, systemInstruction };
  assert.deepEqual(sent.body, { generateContentRequest: wrapped });

  const vertex = await serve(context, "llmg: {projectId: p, region: eu}");
  const again = await call(`${vertex.gateway.url()}/v1beta/models/gemini-2.5-pro:countTokens`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ generateContentRequest: wrapped }),
  });
  assert.deepEqual(JSON.parse(again.body), { totalTokens: 42 });
  const path = "/v1/projects/p/locations/eu/publishers/google/models/gemini-2.5-pro:countTokens";
  assert.deepEqual(
    [vertex.provider.seen[0]?.url, vertex.provider.seen[0]?.body],
    [path, { contents: CONTENTS, systemInstruction }],
  );
  vertex.provider.error = { status: 429, body: { error: { code: 429, message: "m", status: "RESOURCE_EXHAUSTED" } } };
  const failing = google(vertex).models.countTokens({ model: "gemini-2.5-pro", contents: CONTENTS });
  await assert.rejects(failing, (error) => error instanceof ApiError && error.status === 429);

  const openai = await serve(context, "llma: {}");
  const named = await call(`${openai.gateway.url()}/v1beta/models/openai/gpt-5:free:countTokens`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ contents: CONTENTS }),
  });
  assert.deepEqual(JSON.parse(named.body), { totalTokens: 4 + 3 + 7 });
  const counted = await google(openai).models.countTokens({ model: "gpt-5", contents: CONTENTS });
  assert.equal(counted.totalTokens, 4 + 3 + 7);
  assert.equal(openai.provider.seen.length, 0);
});
