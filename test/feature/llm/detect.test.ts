/**
 * Routes that detect: bodies and answers stay as they are, whatever their form; model and tokens are counted where they
 * can be recognised, and no guard looks at them.
 */
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { request as sendRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { buffer as readBuffer } from "node:stream/consumers";
import OpenAI from "openai";
import { call } from "../../support/clients/http.ts";
import { documents, GATEWAY, route, routePolicy, startGateway } from "../../support/gateway/gateway.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { prove } from "../../support/proofs/prove.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { startGuardService } from "../../support/servers/guard-service.ts";
import { streamOf } from "../../support/servers/llm/bedrock-stream.ts";
import { OPENAI_KEY, startOpenAi } from "../../support/servers/llm/openai.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

prove(
  [],
  "official clients work on a route that detects, and are charged for the usage that it recognises",
  async (context) => {
    const policies = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: detect}
spec:
  targetRefs: [{group: gwproxy.dev, kind: GwBackend, name: ai}]
  backend: {ai: {routes: {"*": Detect}}}
`;
    const limit = routePolicy("limit", "ai", "  traffic: {rateLimit: {local: [{tokens: 81, unit: Hours}]}}");
    const openai = await startOpenAi(context);
    const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {llma: {}, host: 127.0.0.1, port: ${openai.port}}}
  policies: {auth: {key: ${OPENAI_KEY}}}
`;
    const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai"), policies, limit));
    const client = new OpenAI({ apiKey: "of-the-client", baseURL: `${gateway.url()}/v1`, maxRetries: 0 });
    openai.answer = { text: "Hello." };
    const messages = [{ role: "user", content: "hi" }] as const;
    // 27 tokens each: a whole answer, a stream, and another format on the same route.
    await client.chat.completions.create({ model: "gpt-9", messages: [...messages] });
    const stream = await client.chat.completions.create({
      model: "gpt-9",
      messages: [...messages],
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
    assert.equal(text, "Hello.");
    assert.equal((await client.responses.create({ model: "gpt-9", input: "hi" })).output_text, "Hello.");
    const headers = { "content-type": "application/json" };
    const body = '{ "model": "gpt-9",  "input": "hi" }';
    const spent = await call(`${gateway.url()}/v1/embeddings`, { method: "POST", headers, body });
    assert.equal(spent.status, 429);
    assert.equal(openai.seen.length, 3);
  },
);

const SECRET = "123-45-6789";
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const sse = (...events: readonly object[]): Buffer =>
  Buffer.from(`${events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join(": ping\n\n")}data: [DONE]\n\n`);
const PROMPT = [{ role: "user", content: `mine is ${SECRET}` }];
const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const CHUNK = { model: "gpt-9-1", choices: [{ index: 0, delta: { content: SECRET } }] };

interface Row {
  readonly path?: string;
  readonly type?: string;
  readonly coding?: string;
  /** The client's body. */
  readonly body: Buffer;
  readonly answer: { readonly type: string; readonly body: Buffer };
  /** Models of the request and of the answer that are recognised. */
  readonly models: readonly [asked: string | undefined, answered?: string];
  /** Tokens in and out, where they are not those of USAGE; what is no text has none unless its answer reports them. */
  readonly tokens?: readonly [number, number];
}

const ANSWER = { type: "application/json", body: json({ model: "gpt-9-1", said: SECRET, usage: USAGE }) };

/** Bodies have spaces and escapes that a printer would lose. */
const ROWS: Readonly<Record<string, Row>> = {
  JSON: {
    body: Buffer.from(`{ "model":"gpt-9", "messages": ${JSON.stringify(PROMPT)},  "x": 1.0, "y":"\\u0041" }\n`),
    answer: {
      type: "application/json",
      body: Buffer.from(`{ "model": "gpt-9-1",  "said": "${SECRET}", "usage": ${JSON.stringify(USAGE)} }\n`),
    },
    models: ["gpt-9", "gpt-9-1"],
  },
  "a body that is not JSON": {
    body: Buffer.from(`{"model": ${SECRET}`),
    answer: ANSWER,
    models: [undefined, "gpt-9-1"],
  },
  "a compressed body": {
    coding: "gzip",
    body: gzipSync(json({ model: "gpt-9", messages: PROMPT })),
    answer: ANSWER,
    models: [undefined, "gpt-9-1"],
  },
  "a form of several parts": {
    path: "/v1/audio/transcriptions",
    type: "multipart/form-data; boundary=b",
    body: Buffer.concat([
      Buffer.from(`--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper\r\n--b\r\n`),
      Buffer.from(`content-disposition: form-data; name="file"; filename="a"\r\n\r\n${SECRET}`),
      Buffer.of(0, 255, 254, 13, 10),
      Buffer.from("\r\n--b--\r\n"),
    ]),
    answer: {
      type: "application/json",
      body: json({ text: SECRET, usage: { type: "tokens", input_tokens: 11, output_tokens: 7 } }),
    },
    models: [undefined],
  },
  "server-sent events": {
    body: json({ model: "gpt-9", stream: true, messages: PROMPT }),
    answer: { type: "text/event-stream", body: sse(CHUNK, CHUNK, { ...CHUNK, choices: [], usage: USAGE }) },
    models: ["gpt-9", "gpt-9-1"],
  },
  "server-sent events that begin with an error": {
    body: json({ model: "gpt-9", stream: true, messages: PROMPT }),
    answer: {
      type: "text/event-stream",
      body: sse({ error: { message: SECRET } }, { model: "gpt-9-1", usage: USAGE }),
    },
    models: ["gpt-9", "gpt-9-1"],
  },
  "binary frames": {
    path: "/model/amazon.nova%3A0/converse-stream",
    body: json({ messages: [{ role: "user", content: [{ text: SECRET }] }] }),
    answer: {
      type: "application/vnd.amazon.eventstream",
      body: Buffer.concat(streamOf({ content: [{ text: SECRET }] })),
    },
    models: ["amazon.nova:0"],
  },
  "no text at all": {
    type: "application/octet-stream",
    body: Buffer.of(0, 1, 2, 3, 4, 5, 6, 7),
    answer: { type: "audio/mpeg", body: Buffer.of(255, 0, 10, 13) },
    models: [undefined],
    tokens: [0, 0],
  },
};

prove(
  [],
  "a route that detects keeps every byte, counts what it recognises and asks no guard, whatever the form",
  async (context) => {
    const service = await startGuardService(context);
    service.answer = { body: { action: { body: "no", status_code: 403 } } };
    let row: Row | undefined;
    const received: Buffer[] = [];
    const upstream = await startUpstream(async (request, response) => {
      received.push(await readBuffer(request));
      response.writeHead(200, { "content-type": row?.answer.type }).end(row?.answer.body);
    });
    context.after(() => upstream.close());
    const guards = `[{regex: {builtins: [Ssn], action: Reject}}, {webhook: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: guard}}}]`;
    const objects = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: guard}
spec: {static: {host: 127.0.0.1, port: ${service.port}}}
---
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {llma: {}, host: 127.0.0.1, port: ${upstream.port}}}
  policies:
    ai: {routes: {/guarded: Completions, "*": Detect}, promptGuard: {streaming: Enabled, request: ${guards}, response: ${guards}}}
`;
    const limit = `  traffic: {rateLimit: {local: [{tokens: 1, unit: Hours, key: 'request.headers["x-row"]'}]}}`;
    const lines = keepLines(context);
    const gateway = await startGateway(
      context,
      documents(GATEWAY, objects, route("ai", "ai"), routePolicy("limit", "ai", limit)),
      { telemetry: lines },
    );
    for (const [name, each] of Object.entries(ROWS)) {
      row = each;
      const { path = "/v1/chat/completions", type = "application/json", coding, body, answer } = each;
      const ask = async (): Promise<{ status: number | undefined; bytes: Buffer }> => {
        const headers = {
          "content-type": type,
          "x-row": name,
          ...(coding === undefined ? {} : { "content-encoding": coding }),
        };
        const outgoing = sendRequest(gateway.url() + path, { method: "POST", headers, agent: false });
        outgoing.end(body);
        const [response] = (await once(outgoing, "response")) as [IncomingMessage];
        return { status: response.statusCode, bytes: await readBuffer(response) };
      };
      assert.deepEqual(await ask(), { status: 200, bytes: answer.body }, name);
      assert.deepEqual(received.at(-1), body, name);
      const line = await lines.nextFields();
      const facts = ["request.model", "response.model", "usage.input_tokens", "usage.output_tokens"];
      const { models, tokens = [11, 7] } = each;
      assert.deepEqual(
        facts.map((fact) => line[`gen_ai.${fact}`]),
        [models[0], models[1], ...tokens],
        name,
      );
      assert.equal((await ask()).status, tokens[0] > 0 ? 429 : 200, `what ${name} is charged`);
      await lines.next();
    }
    assert.equal(service.received.length, 0, "no guard is asked");
    const guarded = await call(`${gateway.url()}/guarded`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-9", messages: PROMPT }),
    });
    assert.equal(guarded.status, 403, "the guards are in force for other formats");
  },
);

prove([], "fields of the configuration are written into JSON bodies of a route that detects", async (context) => {
  const echo = await startEcho(context);
  const fields = `overrides: [{field: user, value: ours}], defaults: [{field: count, value: 1}], transformations: [{field: twice, expression: "llmRequest.size * 2"}]`;
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {llma: {}, host: 127.0.0.1, port: ${echo.port}}}
  policies: {ai: {routes: {"*": Detect}, ${fields}}}
`;
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai")));
  const send = async (type: string, body: string): Promise<string> =>
    echoed((await call(`${gateway.url()}/v1/any`, { method: "POST", headers: { "content-type": type }, body })).body)
      .body;
  const json = await send("application/json", '{"size":2,"user":"theirs"}');
  assert.deepEqual(JSON.parse(json), { size: 2, user: "ours", twice: 4, count: 1 });
  for (const [type, body] of [
    ["application/json", "[1]"],
    ["application/json", "no JSON"],
    ["text/plain", '{"size":2}'],
  ] as const)
    assert.equal(await send(type, body), body, "goes on as it came");
});
