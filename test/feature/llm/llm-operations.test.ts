/** What is no chat, by the official client through the whole gateway: embeddings, models, sessions, and what is passed. */
import assert from "node:assert/strict";
import { once } from "node:events";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import { WebSocket } from "ws";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { AUTHORITY, connectSecurely, openingOf } from "../../support/gateway/secure-session.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { call, type Answer } from "../../support/clients/http.ts";
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

prove([], "the official client lists the provider's models, and passes on what is no chat", async (context) => {
  const limit = routePolicy("limit", "ai", "  traffic: {rateLimit: {local: [{tokens: 1, unit: Hours}]}}");
  const { client, openai, gateway } = await connect(context, "llma: {}", limit);
  const names: string[] = [];
  for await (const { id } of client.models.list()) names.push(id);
  assert.deepEqual(names, ["gpt-9"]);
  assert.equal((await client.models.retrieve("gpt-9")).owned_by, "openai");
  await client.moderations.create({ input: "fine" });
  assert.deepEqual(openai.seen.at(-1)?.body, { input: "fine" });
  // Bodies of any kind and answers of any status pass, and no token is charged.
  const headers = { "content-type": "text/plain" };
  const other = await call(`${gateway.url()}/v1/files?purpose=a`, { method: "POST", headers, body: "no JSON" });
  assert.deepEqual([other.status, JSON.parse(other.body).error.message], [404, "Invalid URL (POST /v1/files)"]);
  assert.equal((await client.embeddings.create({ model: "text-9", input: "one" })).data.length, 1);
});

prove(
  [],
  "a prefix stands in place of /v1 in paths that are passed on, and a provider without a list says so",
  async (context) => {
    const echo = await startEcho(context);
    const backend = (name: string, provider: string): string => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {ai: {provider: {${provider}, host: 127.0.0.1, port: ${echo.port}}}}
`;
    const gateway = await startGateway(
      context,
      documents(
        GATEWAY,
        backend("a", "llma: {}, pathPrefix: /llm/"),
        route("a", "a"),
        backend("f", "llmg: {projectId: p}"),
        route("f", "f", "/f"),
      ),
    );
    const at = async (path: string): Promise<string> => echoed((await call(`${gateway.url()}${path}`)).body).url;
    assert.equal(await at("/v1/files/file_1?a=b"), "/llm/files/file_1?a=b");
    assert.equal(await at("/v1/models?after=x"), "/llm/models?after=x");
    const none = await call(`${gateway.url()}/f/v1/models`);
    assert.deepEqual(
      [none.status, JSON.parse(none.body).error.message],
      [501, "failed to process LLM request: this provider lists no models"],
    );
  },
);

for (const provider of ["llma: {model: gpt-9}", "custom: {model: gpt-9, formats: [{type: Realtime}]}"])
  prove([], `the official client holds a session, whose usage is summed (${provider})`, async (context) => {
    const limit = routePolicy("limit", "ai", "  traffic: {rateLimit: {local: [{tokens: 60, unit: Hours}]}}");
    const { client, realtime, url } = await connectSecurely(context, provider, limit);
    const options = { ca: AUTHORITY.certificate, perMessageDeflate: true };
    const session = new OpenAIRealtimeWS({ model: "other", options }, client);
    await once(session.socket, "open");
    for (let turn = 0; turn < 2; turn++) {
      session.send({ type: "response.create" });
      const { response } = await session.emitted("response.done");
      assert.equal(response.usage?.total_tokens, 30);
    }
    const [opened] = realtime.opened;
    assert.deepEqual(
      [opened?.url, opened?.headers["sec-websocket-extensions"]],
      ["/v1/realtime?model=gpt-9", undefined],
    );
    session.close();
    await once(session.socket, "close");
    // Both turns are charged once the gateway has seen the end of the session: all tokens are used then.
    const next = `${url.replace("https", "wss")}/v1/realtime?model=m`;
    let outcome = "opened";
    while (outcome === "opened") outcome = await openingOf(next);
    assert.match(outcome, /429/);
  });

prove([], "an upgrade of Responses is relayed where the provider can, and 426 elsewhere", async (context) => {
  const { url, realtime } = await connectSecurely(context, "custom: {formats: [{type: Responses}]}");
  const socket = new WebSocket(`${url.replace("https", "wss")}/v1/responses`, [], { ca: AUTHORITY.certificate });
  await once(socket, "open");
  const received: string[] = [];
  socket.on("message", (data: Buffer) => received.push((JSON.parse(data.toString()) as { type: string }).type));
  socket.send(JSON.stringify({ type: "response.create", model: "gpt-9", input: "hi" }));
  while (received.length < 2) await once(socket, "message");
  assert.deepEqual(received, ["response.output_text.delta", "response.completed"]);
  assert.equal(realtime.opened[0]?.url, "/v1/responses");
  socket.terminate();
  const other = await connectSecurely(context, "custom: {formats: [{type: Completions}]}");
  for (const [path, status] of [
    ["responses", 426],
    ["realtime?model=m", 400],
  ] as const) {
    const outcome = await openingOf(`${other.url.replace("https", "wss")}/v1/${path}`);
    assert.match(outcome, new RegExp(`${status}`), path);
  }
});

const GUARD = "request: [{regex: {builtins: [Email]}}]";
for (const [name, provider, policies, path, status] of [
  ["guards check Responses", "llma: {}", `promptGuard: {${GUARD}}`, "responses", 426],
  ["a model is pinned", "llma: {model: gpt-9}", "modelAliases: {a: b}", "responses", 426],
  ["a prompt is added", "llma: {}", "prompt: {prepend: [{role: system, content: a}]}", "responses", 426],
] as const)
  prove([], `a session that cannot be looked into is refused where ${name}`, async (context) => {
    const { url, realtime } = await connectSecurely(context, provider, "", `, ai: {${policies}}`);
    const outcome = await openingOf(`${url.replace("https", "wss")}/v1/${path}`);
    assert.match(outcome, new RegExp(`${status}`));
    assert.equal(realtime.opened.length, 0);
  });

prove([], "embeddings are no conversation, so guards do not check them", async (context) => {
  const guarded = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: guard}
spec:
  targetRefs: [{group: gwproxy.dev, kind: GwBackend, name: ai}]
  backend: {ai: {promptGuard: {${GUARD}}}}
`;
  const { client, openai } = await connect(context, "llma: {}", guarded);
  await client.embeddings.create({ model: "text-9", input: "a@b.test" });
  assert.equal(openai.seen[0]?.body["input"], "a@b.test");
});

prove([], "rerank goes to an OpenAI as it came, with the model of the configuration", async (context) => {
  const echo = await startEcho(context);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {llma: {model: ranker}, host: 127.0.0.1, port: ${echo.port}}}
`;
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai")));
  const rank = (body: object): Promise<Answer> =>
    call(`${gateway.url()}/v2/rerank`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const { url, body } = echoed((await rank({ query: "q", documents: ["a"], unknown: 1 })).body);
  assert.deepEqual(
    [url, JSON.parse(body)],
    ["/v1/rerank", { query: "q", documents: ["a"], unknown: 1, model: "ranker" }],
  );
  assert.equal((await rank({ query: "q", documents: "a" })).status, 400);
});
