/**
 * What is no chat, in front of every provider: embeddings, counts of tokens, rerank and realtime sessions are passed on
 * or translated to the provider's path, answered by the gateway, or refused with nothing sent.
 */
import assert from "node:assert/strict";
import { call } from "../../support/clients/http.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import { prove } from "../../support/proofs/prove.ts";
import { startScripted } from "../../support/servers/scripted-server.ts";

type Operation = "embeddings" | "count" | "rerank" | "realtime";

/** Embeddings of Gemini clients go where those of others go, except at Google. */
type Asked = Operation | "embedContent";

/** What becomes of an operation: the path at which the provider is called, an answer of the gateway, or a refusal. */
type Cell = `/${string}` | "answered here" | "refused";

interface Row {
  readonly name: string;
  /** Members of the provider as YAML flow. */
  readonly provider: string;
  /** The model of a chat, and those of operations that have their own. */
  readonly model: string;
  readonly models?: Readonly<Partial<Record<Operation, string>>>;
  readonly cells: Readonly<Record<Operation, Cell>>;
  readonly embedContent?: Cell;
}

const AZURE = "/openai/v1";
const LAB = "/api/projects/lab/openai/v1";
const RES_B = "llmd: {resourceName: acme, resourceType: ResB, projectName: lab}";
const VERTEX = "llmg: {projectId: p, region: europe-west1}";
const VERTEX_BASE = "/v1/projects/p/locations";
const VERTEX_EMBEDDINGS = `${VERTEX_BASE}/europe-west1/publishers/google/models/text-embedding-005:predict`;
const VERTEX_RANK = `${VERTEX_BASE}/global/rankingConfigs/default_ranking_config:rank`;
const OF_VERTEX = { embeddings: "text-embedding-005", rerank: "semantic-ranker-default-004" } as const;
const OF_BEDROCK = { embeddings: "amazon.titan-embed-text-v2:0", rerank: "cohere.rerank-v3-5:0" } as const;
const TITAN = "/model/amazon.titan-embed-text-v2%3A0/invoke";

const ROWS: readonly Row[] = [
  {
    name: "llma",
    provider: "llma: {}",
    model: "gpt-9",
    cells: {
      embeddings: "/v1/embeddings",
      count: "answered here",
      rerank: "/v1/rerank",
      realtime: "/v1/realtime?model=gpt-9",
    },
  },
  {
    name: "llmb",
    provider: "llmb: {}",
    model: "gpt-4o",
    cells: { embeddings: "/embeddings", count: "answered here", rerank: "/rerank", realtime: "refused" },
  },
  {
    name: "llmc",
    provider: 'llmc: {endpoint: "https://acme.openai.azure.com"}',
    model: "gpt-9",
    cells: {
      embeddings: `${AZURE}/embeddings`,
      count: "answered here",
      rerank: `${AZURE}/rerank`,
      realtime: `${AZURE}/realtime?model=gpt-9`,
    },
  },
  {
    name: "llmd-res-a",
    provider: "llmd: {resourceName: acme, resourceType: ResA}",
    model: "gpt-9",
    cells: {
      embeddings: `${AZURE}/embeddings`,
      count: "answered here",
      rerank: `${AZURE}/rerank`,
      realtime: `${AZURE}/realtime?model=gpt-9`,
    },
  },
  {
    name: "llmd-res-b",
    provider: RES_B,
    model: "gpt-9",
    cells: {
      embeddings: `${LAB}/embeddings`,
      count: "answered here",
      rerank: `${LAB}/rerank`,
      realtime: "refused",
    },
  },
  {
    name: "llmd-claude",
    provider: RES_B,
    model: "claude-opus-4-5",
    cells: {
      embeddings: `${LAB}/embeddings`,
      count: "/anthropic/v1/messages/count_tokens",
      rerank: `${LAB}/rerank`,
      realtime: "refused",
    },
  },
  {
    name: "llme",
    provider: "llme: {}",
    model: "claude-opus-4-5",
    cells: { embeddings: "refused", count: "/v1/messages/count_tokens", rerank: "refused", realtime: "refused" },
  },
  {
    name: "llmf",
    provider: "llmf: {}",
    model: "gemini-2.5-flash",
    cells: { embeddings: "/v1beta/openai/embeddings", count: "answered here", rerank: "refused", realtime: "refused" },
    embedContent: "/v1beta/models/gemini-2.5-flash:embedContent",
  },
  ...[
    { name: "llmg-gemini", model: "gemini-2.5-flash", count: "answered here" as const },
    {
      name: "llmg-claude",
      model: "claude-sonnet-4-5-20250929",
      count: `${VERTEX_BASE}/europe-west1/publishers/anthropic/models/count-tokens:rawPredict` as const,
    },
    { name: "llmg-other", model: "meta/llama-4", count: "answered here" as const },
  ].map(({ name, model, count }) => ({
    name,
    provider: VERTEX,
    model,
    models: OF_VERTEX,
    cells: { embeddings: VERTEX_EMBEDDINGS, count, rerank: VERTEX_RANK, realtime: "refused" } as const,
  })),
  {
    name: "llmh-claude",
    provider: "llmh: {region: eu-west-1}",
    model: "anthropic.claude-sonnet-4-5-20250929-v1:0",
    models: OF_BEDROCK,
    cells: {
      embeddings: TITAN,
      count: "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/count-tokens",
      rerank: "/rerank",
      realtime: "refused",
    },
  },
  {
    name: "llmh-nova",
    provider: "llmh: {region: eu-west-1}",
    model: "amazon.nova-pro-v1:0",
    models: OF_BEDROCK,
    cells: { embeddings: TITAN, count: "answered here", rerank: "/rerank", realtime: "refused" },
  },
  {
    name: "custom-all",
    provider: "custom: {formats: [{type: Embeddings}, {type: MessagesTokenCount}, {type: Realtime}]}",
    model: "m-1",
    cells: {
      embeddings: "/v1/embeddings",
      count: "/v1/messages/count_tokens",
      rerank: "refused",
      realtime: "/v1/realtime?model=m-1",
    },
  },
  {
    name: "custom-chat",
    provider: "custom: {formats: [{type: Completions}]}",
    model: "m-1",
    cells: { embeddings: "refused", count: "answered here", rerank: "refused", realtime: "refused" },
  },
];

const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
};

interface Request {
  readonly path: string;
  /** undefined for a GET that asks for an upgrade. */
  readonly body?: object;
}

const REQUESTS: Readonly<Record<Asked, (model: string) => Request>> = {
  embeddings: (model) => ({ path: "/v1/embeddings", body: { model, input: "a" } }),
  embedContent: (model) => ({
    path: `/v1beta/models/${model}:embedContent`,
    body: { model: `models/${model}`, content: { parts: [{ text: "a" }] } },
  }),
  count: (model) => ({
    path: "/v1/messages/count_tokens",
    body: { model, messages: [{ role: "user", content: "a" }] },
  }),
  rerank: (model) => ({ path: "/v1/rerank", body: { model, query: "a", documents: ["b", "c"] } }),
  realtime: (model) => ({ path: `/v1/realtime?model=${model}` }),
};

prove([], "what is no chat has its place in front of every provider", async (context) => {
  const { port, received } = await startScripted(context, (_request, response) => {
    response.writeHead(500, { "content-type": "application/json" }).end('{"error":{"message":"seen"}}');
  });
  const objects = ROWS.flatMap(({ name, provider }) => {
    const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  ai: {provider: {${provider}, host: 127.0.0.1, port: ${port}}}
  policies: {auth: {key: the-key}}
`;
    return [backend, route(name, name, `/${name}`)];
  });
  const gateway = await startGateway(context, documents(GATEWAY, ...objects));
  const failures: string[] = [];
  for (const { name, model, models = {}, cells, embedContent = cells.embeddings } of ROWS)
    for (const operation of Object.keys(REQUESTS) as Asked[]) {
      // The keys of the table above.
      const own = operation === "embedContent" ? models.embeddings : models[operation];
      const cell = operation === "embedContent" ? embedContent : cells[operation];
      const { path, body } = REQUESTS[operation](own ?? model);
      const before = received.length;
      const url = `${gateway.url()}/${name}${path}`;
      const json = { "content-type": "application/json" };
      const answer = await (body === undefined
        ? call(url, { headers: UPGRADE })
        : call(url, { method: "POST", headers: json, body: JSON.stringify(body) }));
      const seen = received.slice(before).map((request) => request.path);
      const expected = {
        "answered here": { status: 200, seen: [] as string[] },
        refused: { status: 400, seen: [] as string[] },
      }[cell as string] ?? { status: 500, seen: [cell as string] };
      if (answer.status !== expected.status || seen.join() !== expected.seen.join())
        failures.push(`${name}, ${operation}: ${answer.status} ${seen.join()} ${answer.body.slice(0, 150)}`);
    }
  assert.deepEqual(failures, []);
});
