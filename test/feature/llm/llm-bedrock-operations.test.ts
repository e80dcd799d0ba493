/** Embeddings, rerank, token counts and the page about Bedrock, through the whole gateway to a strict server. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { parseAllDocuments, stringify } from "yaml";
import { bedrockBackend, newest, REGION, serveBedrock } from "../../support/gateway/bedrock.ts";
import { call } from "../../support/clients/http.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import { prove } from "../../support/proofs/prove.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { startBedrock } from "../../support/servers/llm/bedrock.ts";

/** Requests of the official client by model: what leaves for the model, and the vectors and tokens that come back. */
const EMBEDDINGS = [
  {
    model: "amazon.titan-embed-text-v2:0",
    request: { input: "a", dimensions: 256, normalize: true },
    sent: { inputText: "a", dimensions: 256, normalize: true },
    vectors: [[0.25, -0.5]],
    tokens: 5,
  },
  {
    model: "cohere.embed-english-v3",
    request: { input: ["a", "b"], dimensions: 256, truncate: "END" },
    sent: { texts: ["a", "b"], input_type: "search_query", truncate: "END" },
    vectors: [
      [0, 0.5],
      [1, 0.5],
    ],
    tokens: 6,
  },
  {
    model: "global.cohere.embed-v4:0",
    request: { input: "a", dimensions: 256, input_type: "search_document" },
    sent: { texts: ["a"], input_type: "search_document", output_dimension: 256 },
    vectors: [[0, 0.5]],
    tokens: 6,
  },
  {
    model: "amazon.nova-2-multimodal-embeddings-v1:0",
    request: { input: "a", dimensions: 1024 },
    sent: {
      taskType: "SINGLE_EMBEDDING",
      singleEmbeddingParams: {
        embeddingPurpose: "GENERIC_INDEX",
        embeddingDimension: 1024,
        text: { truncationMode: "END", value: "a" },
      },
    },
    vectors: [[0.5, 0.125]],
    tokens: 6,
  },
] as const;

prove(
  [],
  "the official client embeds in the dialect of each model, on Runtime whatever the preference",
  async (context) => {
    const bedrock = await startBedrock(context);
    const settings = `llmh: {region: ${REGION}, endpointPreference: AltOnly}`;
    const gateway = await serveBedrock(
      context,
      bedrockBackend(`{provider: {${settings}, host: 127.0.0.1, port: ${bedrock.port}}}`),
    );
    const client = new OpenAI({ apiKey: "of-the-client", baseURL: `${gateway.url()}/v1`, maxRetries: 0 });
    for (const { model, request, sent, vectors, tokens } of EMBEDDINGS) {
      // The client asks for packed vectors, and the fields of the dialects are not in its types.
      const answer = await client.embeddings.create({ model, ...request } as unknown as OpenAI.EmbeddingCreateParams);
      assert.deepEqual(newest(bedrock).body, sent);
      assert.equal(newest(bedrock).url, `/model/${encodeURIComponent(model)}/invoke`);
      assert.deepEqual(
        answer.data.map(({ embedding }) => [...embedding]),
        vectors,
      );
      assert.equal(answer.usage.prompt_tokens, tokens);
    }
    for (const [model, input, text] of [
      ["amazon.titan-embed-text-v2:0", ["a", "b"], /one string/],
      ["cohere.embed-v4:0", [1, 2], /input\[0\] must be a string/],
      ["anthropic.claude-opus-4-7", "a", /unsupported conversion/],
    ] as const) {
      const asked = client.embeddings.create({ model, input } as unknown as OpenAI.EmbeddingCreateParams);
      await assert.rejects(asked, (error) => error instanceof OpenAI.BadRequestError && text.test(error.message));
    }
  },
);

prove([], "documents are ranked by the runtime of agents, in the form of rerank clients", async (context) => {
  const bedrock = await startBedrock(context);
  const settings = `llmh: {region: ${REGION}}`;
  const gateway = await serveBedrock(
    context,
    bedrockBackend(`{provider: {${settings}, host: 127.0.0.1, port: ${bedrock.port}}}`),
  );
  const rank = async (more: object): Promise<{ status: number; body: string }> => {
    const body = JSON.stringify({
      model: "cohere.rerank-v3-5:0",
      query: "q",
      documents: ["a", { text: "b" }],
      ...more,
    });
    return call(`${gateway.url()}/v2/rerank`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
  };
  const all = await rank({ return_documents: true });
  assert.equal(all.status, 200, all.body);
  assert.deepEqual(JSON.parse(all.body), {
    model: "cohere.rerank-v3-5:0",
    results: [
      { index: 1, relevance_score: 1, document: { text: "b" } },
      { index: 0, relevance_score: 0.5, document: { text: "a" } },
    ],
  });
  const { url, body } = newest(bedrock);
  assert.equal(url, "/rerank");
  const source = (text: string): object => ({
    type: "INLINE",
    inlineDocumentSource: { type: "TEXT", textDocument: { text } },
  });
  const modelArn = `arn:aws:bedrock:${REGION}::foundation-model/cohere.rerank-v3-5:0`;
  assert.deepEqual(body, {
    queries: [{ type: "TEXT", textQuery: { text: "q" } }],
    sources: [source("a"), source("b")],
    rerankingConfiguration: {
      type: "BEDROCK_RERANKING_MODEL",
      bedrockRerankingConfiguration: { numberOfResults: 2, modelConfiguration: { modelArn } },
    },
  });
  const best = await rank({ top_n: 1 });
  assert.deepEqual(JSON.parse(best.body).results, [{ index: 1, relevance_score: 1 }]);
  assert.equal((await rank({ documents: [] })).status, 400);
  assert.equal((await rank({ documents: [1] })).status, 400);
});

prove([], "the official client has its tokens counted by the foundation model behind a profile", async (context) => {
  const bedrock = await startBedrock(context);
  const provider = `{provider: {llmh: {region: ${REGION}}, host: 127.0.0.1, port: ${bedrock.port}}}`;
  const gateway = await serveBedrock(context, bedrockBackend(provider));
  const client = new Anthropic({ apiKey: "of-the-client", baseURL: gateway.url(), maxRetries: 0 });
  const counted = await client.messages.countTokens({
    model: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
    messages: [{ role: "user", content: "hi" }],
  });
  assert.equal(counted.input_tokens, 42);
  assert.equal(newest(bedrock).url, "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/count-tokens");
});

prove([], "the examples of the page about Bedrock are served as they stand", async (context) => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/llm-bedrock.md"), "utf8");
  const blocks = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, yaml = ""]) => yaml);
  const serve = async (yaml: string, port: number, model: string): Promise<string> => {
    const [backend, secret] = parseAllDocuments(yaml).map((document) => document.toJS());
    Object.assign(backend.spec.ai.provider, { host: "127.0.0.1", port });
    const { name } = backend.metadata;
    const objects = documents(GATEWAY, stringify(backend), stringify(secret), route(name, name));
    const gateway = await startGateway(context, objects);
    const body = JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] });
    const headers = { "content-type": "application/json" };
    const answer = await call(`${gateway.url()}/v1/chat/completions`, { method: "POST", headers, body });
    assert.equal(answer.status, 200, answer.body);
    return answer.body;
  };
  assert.equal(blocks.length, 2);
  const [signed = "", alt = ""] = blocks;
  const bedrock = await startBedrock(context);
  const answer = JSON.parse(await serve(signed, bedrock.port, "of-the-client"));
  assert.equal(answer.choices[0].message.content, "Hello.");
  assert.match(newest(bedrock).url, /^\/model\/eu\.anthropic/);
  assert.equal(JSON.stringify(newest(bedrock).body).includes("my-guardrail"), true);
  const echo = await startEcho(context);
  const { url, headers } = echoed(await serve(alt, echo.port, "qwen.qwen3-32b"));
  assert.equal(url, "/v1/chat/completions");
  assert.match(headers["authorization"] ?? "", /^Bearer bedrock-api-key/);
});
