/** What is no chat: embeddings, by the official client through the whole gateway to a strict OpenAI. */
import assert from "node:assert/strict";
import OpenAI from "openai";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { OPENAI_KEY, startOpenAi, type OpenAiServer } from "../../support/servers/llm/openai.ts";

interface Setup {
  readonly openai: OpenAiServer;
  readonly gateway: TestGateway;
  readonly client: OpenAI;
}

/** @param provider as YAML flow, such as `llma: {}` */
async function connect(context: ProofContext, provider: string, ...more: readonly string[]): Promise<Setup> {
  const openai = await startOpenAi(context);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {${provider}, host: 127.0.0.1, port: ${openai.port}}}
  policies: {auth: {key: ${OPENAI_KEY}}}
`;
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai"), ...more));
  const client = new OpenAI({ apiKey: "of-the-client", baseURL: `${gateway.url()}/v1`, maxRetries: 0 });
  return { openai, gateway, client };
}

for (const provider of ["llma: {model: text-9}", "custom: {model: text-9, formats: [{type: Embeddings}]}"])
  prove([], `the official client gets vectors and their usage (${provider})`, async (context) => {
    const { client, openai } = await connect(context, provider);
    const { data, usage } = await client.embeddings.create({ model: "any", input: ["one", "two"], dimensions: 2 });
    assert.deepEqual(
      data.map(({ embedding }) => embedding),
      [
        [0.25, -0.5],
        [0.25, -0.5],
      ],
    );
    assert.deepEqual(usage, { prompt_tokens: 8, total_tokens: 8 });
    const { model, input, dimensions } = openai.seen[0]?.body ?? {};
    assert.deepEqual([model, input, dimensions], ["text-9", ["one", "two"], 2]);
  });

prove([], "embeddings are charged, and refused where the provider has none or the body is wrong", async (context) => {
  const limit = routePolicy("limit", "ai", "  traffic: {rateLimit: {local: [{tokens: 8, unit: Hours}]}}");
  const { client, gateway } = await connect(context, "llma: {}", limit);
  const wrong = await call(`${gateway.url()}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"model":"m","input":7}',
  });
  assert.deepEqual(
    [wrong.status, JSON.parse(wrong.body).error.message],
    [400, "failed to process LLM request: input must be a string or a list"],
  );
  await client.embeddings.create({ model: "text-9", input: "one" });
  await assert.rejects(client.embeddings.create({ model: "text-9", input: "one" }), OpenAI.RateLimitError);
  const none = await connect(context, "custom: {formats: [{type: Completions}]}");
  await assert.rejects(none.client.embeddings.create({ model: "m", input: "x" }), OpenAI.BadRequestError);
  assert.equal(none.openai.seen.length, 0);
});
