/** The LLM handler against an upstream in memory: what is sent, what comes back, what is charged, what is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import type { UpstreamResponse } from "../../../../src/proxy/upstream/upstream.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { createLlmHandler } from "../../../../src/proxy/llm/handler.ts";
import {
  aiBackend,
  fakeUpstream,
  readBody,
  streamFrom,
  testDeps,
  TestExchange,
  type ProviderInit,
} from "../../../support/gateway/llm-harness.ts";

const LLMA: ProviderInit = { key: "llma", identity: "openai" };
const LLME: ProviderInit = { key: "llme", identity: "anthropic" };
const CHAT = { model: "m", messages: [{ role: "user", content: "hi" }] };
const COMPLETION = { id: "1", model: "m-1", choices: [], usage: { prompt_tokens: 7, completion_tokens: 5 } };

function answer(body: unknown, type = "application/json", status = 200, extra: string[] = []): UpstreamResponse {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const headers = new HeaderList(["content-type", type, "content-length", String(bytes.length), ...extra]);
  return { status, headers, body: streamFrom([bytes]) };
}

interface Run {
  readonly body?: unknown;
  readonly headers?: string[];
  readonly target?: string;
  readonly response?: UpstreamResponse;
}

async function run(provider: ProviderInit, { body = CHAT, headers = [], target, response = answer(COMPLETION) }: Run) {
  const upstream = fakeUpstream(() => response);
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const exchange = new TestExchange(bytes, new HeaderList(["Host", "gateway.test", ...headers]));
  if (target !== undefined) exchange.target = target;
  const charged: number[] = [];
  exchange.tokenGates.push({ admit: () => undefined, settle: (total) => void charged.push(total) });
  const reply = await createLlmHandler(aiBackend(provider), testDeps(upstream))(exchange);
  const sent = upstream.sent[0];
  assert.ok(sent, "something was sent");
  const sentBody = JSON.parse(String(sent.request.body)) as Record<string, unknown>;
  return { reply, exchange, charged, sent, sentBody };
}

async function refusal(provider: ProviderInit, given: Run): Promise<ProxyError> {
  const failure = await run(provider, given).then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(failure instanceof ProxyError, `refused with a ProxyError, not ${String(failure)}`);
  return failure;
}

test("a chat completion passes through: unknown fields stay, the address is the vendor's, usage is charged once", async () => {
  const { reply, exchange, charged, sent, sentBody } = await run(LLMA, {
    body: { ...CHAT, future: { a: [1] } },
    target: "/v1/chat/completions?trace=1",
    headers: ["Connection", "x-private", "X-Private", "1", "Accept-Encoding", "br", "X-Kept", "yes"],
  });
  assert.deepEqual(sentBody, { ...CHAT, future: { a: [1] } });
  assert.equal(sent.target.host, "api.openai.com");
  assert.equal(sent.target.port, 443);
  assert.ok(sent.target.tls, "TLS is on");
  assert.equal(sent.request.path, "/v1/chat/completions?trace=1");
  assert.deepEqual(sent.request.headers.getAll("host"), ["api.openai.com"]);
  assert.equal(sent.request.headers.get("x-private"), undefined);
  assert.equal(sent.request.headers.get("accept-encoding"), "identity");
  assert.equal(sent.request.headers.get("x-kept"), "yes");
  assert.deepEqual(JSON.parse((await readBody(reply.body)).text), COMPLETION);
  assert.deepEqual(charged, [12]);
  exchange.finish();
  assert.deepEqual(charged, [12]);
  assert.deepEqual(exchange.llm, {
    requestModel: "m",
    provider: "openai",
    streaming: false,
    responseModel: "m-1",
    inputTokens: 7,
    outputTokens: 5,
    providerInputTokens: 7,
    totalTokens: 12,
  });
  assert.equal(exchange.backend?.type, "ai");
});

test("a configured model replaces the client's, and gpt models get the newer name of the limit", async () => {
  const { sentBody } = await run({ ...LLMA, model: "gpt-x" }, { body: { ...CHAT, model: undefined, max_tokens: 9 } });
  assert.equal(sentBody["model"], "gpt-x");
  assert.equal(sentBody["max_completion_tokens"], 9);
  assert.equal("max_tokens" in sentBody, false);
  const both = await run(LLMA, { body: { ...CHAT, model: "gpt-y", max_tokens: 9, max_completion_tokens: 4 } });
  assert.equal(both.sentBody["max_completion_tokens"], 4);
  assert.equal("max_tokens" in both.sentBody, false);
  assert.equal((await run(LLMA, { body: { ...CHAT, max_tokens: 9 } })).sentBody["max_tokens"], 9);
});

test("streams always ask for usage, and only clients that asked for it see it", async () => {
  const usage = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n';
  const text = 'data: {"choices":[{"index":0,"delta":{"content":"usage"}}]}\n\n';
  const seen = async (options?: object): Promise<string> => {
    const response = answer(`${text}${usage}data: [DONE]\n\n`, "text/event-stream");
    const body = { ...CHAT, stream: true, ...(options && { stream_options: options }) };
    const { sentBody, reply, charged } = await run(LLMA, { body, response });
    assert.equal((sentBody["stream_options"] as Record<string, unknown>)["include_usage"], true);
    const read = await readBody(reply.body);
    assert.deepEqual(charged, [3]);
    return read.text;
  };
  const hidden = `${text}data: [DONE]\n\n`;
  assert.equal(await seen(), hidden);
  assert.equal(await seen({ include_usage: false }), hidden);
  assert.equal(await seen({ include_obfuscation: false }), hidden);
  assert.equal(await seen({ include_usage: true }), `${text}${usage}data: [DONE]\n\n`);
});

test("paths: a prefix replaces /v1, a configured path drops the query, custom formats name their own", async () => {
  const path = async (provider: ProviderInit): Promise<string> =>
    (await run(provider, { target: "/x?a=1" })).sent.request.path;
  const there = { host: "llm.test", port: 8080 };
  assert.equal(await path({ ...LLMA, ...there, pathPrefix: "/api/" }), "/api/chat/completions?a=1");
  assert.equal(await path({ ...LLMA, ...there, path: "/only?b=2" }), "/only?b=2");
  assert.equal(await path({ key: "custom", ...there, formats: [{ type: "Completions" }] }), "/v1/chat/completions?a=1");
  assert.equal(await path({ key: "custom", ...there, formats: [{ type: "Completions", path: "/c?x" }] }), "/c?x&a=1");
});

test("the authority is the configured name with its port, and the client's for a bare address", async () => {
  const host = async (provider: ProviderInit): Promise<string | undefined> =>
    (await run(provider, {})).sent.request.headers.get("host");
  assert.equal(await host({ ...LLMA, host: "llm.test", port: 8080 }), "llm.test:8080");
  assert.equal(await host({ ...LLMA, host: "llm.test", port: 443, tls: true }), "llm.test");
  assert.equal(await host({ ...LLMA, host: "127.0.0.1", port: 8080 }), "gateway.test");
});

test("a messages provider gets its own headers, and the bearer token as a key", async () => {
  const response = (): UpstreamResponse => answer({ id: "1", model: "m", content: [], usage: { input_tokens: 3 } });
  const headers = async (init: ProviderInit, given: string[]): Promise<HeaderList> =>
    (await run(init, { headers: given, response: response() })).sent.request.headers;
  const sent =
    "Origin|https://a.test|Sec-Fetch-Mode|cors|Access-Control-Request-Method|POST|Authorization|Bearer client|X-Api-Key|client";
  const browser = await headers({ ...LLME, credential: "k1" }, sent.split("|"));
  assert.equal(browser.get("x-api-key"), "k1");
  assert.equal(browser.get("anthropic-version"), "2023-06-01");
  for (const name of ["authorization", "origin", "sec-fetch-mode", "access-control-request-method"])
    assert.equal(browser.get(name), undefined, name);
  const oauth = await headers({ ...LLME, credential: "sk-ant-oat-1" }, ["X-Api-Key", "client"]);
  assert.equal(oauth.get("authorization"), "Bearer sk-ant-oat-1");
  assert.equal(oauth.get("x-api-key"), undefined);
  assert.equal((await headers(LLME, ["Authorization", "Bearer client"])).get("x-api-key"), "client");
});

test("packed requests are unpacked, and nothing of the old framing is sent on", async () => {
  const bytes = Buffer.from(JSON.stringify(CHAT));
  const packed = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync };
  for (const [name, pack] of Object.entries(packed)) {
    const { sentBody, sent } = await run(LLMA, { body: pack(bytes), headers: ["Content-Encoding", name] });
    assert.deepEqual(sentBody, CHAT);
    assert.equal(sent.request.headers.get("content-encoding"), undefined);
  }
});

test("hostile bodies are refused with the status of the table", async () => {
  const bomb = gzipSync(Buffer.alloc(10_000_000, 0x20));
  const deep = `{"model":"m","messages":[],"x":${"[".repeat(500)}${"]".repeat(500)}}`;
  const cases: readonly (readonly [string, Run, number])[] = [
    ["not JSON", { body: "{" }, 400],
    ["a list", { body: "[]" }, 400],
    ["no model", { body: { messages: [] } }, 400],
    ["a model that is no text", { body: { ...CHAT, model: 5 } }, 400],
    ["an empty model", { body: { ...CHAT, model: "" } }, 400],
    ["no messages", { body: { model: "m" } }, 400],
    ["nested too deep", { body: deep }, 400],
    ["not UTF-8", { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]) }, 400],
    ["empty", { body: Buffer.alloc(0) }, 400],
    ["too large", { body: { ...CHAT, x: "x".repeat(70_000) } }, 413],
    ["too large when unpacked", { body: bomb, headers: ["Content-Encoding", "gzip"] }, 413],
    ["broken gzip", { body: "xx", headers: ["Content-Encoding", "gzip"] }, 400],
    ["unknown coding", { headers: ["Content-Encoding", "compress"] }, 415],
    ["two codings", { headers: ["Content-Encoding", "gzip, br"] }, 415],
  ];
  for (const [name, given, status] of cases) assert.equal((await refusal(LLMA, given)).status, status, name);
});

test("a repeated key cannot smuggle another model past us", async () => {
  const { sent } = await run(LLMA, { body: '{"model":"cheap","mod\\u0065l":"dear","messages":[]}' });
  assert.equal(String(sent.request.body), '{"model":"dear","messages":[]}');
});

test("a budget that is used up ends the request before anything is sent, and others are given back", async () => {
  const upstream = fakeUpstream(() => answer(COMPLETION));
  const exchange = new TestExchange(Buffer.from(JSON.stringify(CHAT)));
  const charged: number[] = [];
  exchange.tokenGates.push(
    { admit: () => undefined, settle: (total) => void charged.push(total) },
    {
      admit: () => {
        throw new ProxyError("rate_limited");
      },
      settle: () => assert.fail("a gate that refused is not charged"),
    },
  );
  await assert.rejects(createLlmHandler(aiBackend(LLMA), testDeps(upstream))(exchange), { code: "rate_limited" });
  exchange.finish();
  assert.deepEqual(charged, [0]);
  assert.equal(upstream.sent.length, 0);
});

test("errors: the same family passes unchanged, another one is translated with the status kept", async () => {
  const error = { error: { message: "no", type: "x", code: "y" } };
  const same = await run(LLMA, { response: answer(error, "application/json", 429) });
  assert.equal(same.reply.status, 429);
  assert.deepEqual(JSON.parse((await readBody(same.reply.body)).text), error);
  assert.deepEqual(same.charged, [0]);
  const vendor = { type: "error", error: { type: "overloaded_error", message: "busy" } };
  const other = await run(LLME, { response: answer(vendor, "application/json", 529) });
  assert.equal(other.reply.status, 529);
  assert.deepEqual(JSON.parse((await readBody(other.reply.body)).text), {
    error: { message: "busy", type: "overloaded_error", param: null, code: null },
  });
});

test("packed answers are unpacked and their old length is gone", async () => {
  const packed = answer(gzipSync(JSON.stringify(COMPLETION)), "application/json", 200, ["content-encoding", "gzip"]);
  const { reply, charged } = await run(LLMA, { response: packed });
  assert.deepEqual(JSON.parse((await readBody(reply.body)).text), COMPLETION);
  assert.equal(reply.headers.get("content-encoding"), undefined);
  assert.equal(reply.headers.get("content-length"), undefined);
  assert.deepEqual(charged, [12]);
});

test("an answer that cannot be used is refused, never passed as one", async () => {
  assert.equal((await refusal(LLME, { response: answer("<html>", "text/html") })).status, 502);
  assert.equal((await refusal(LLME, { response: answer("[]") })).status, 502);
  for (const provider of [LLMA, LLME])
    assert.equal((await refusal(provider, { response: answer("", "text/event-stream") })).status, 502);
  assert.equal((await refusal(LLMA, { response: answer({ x: "x".repeat(70_000) }) })).status, 502);
});

test("the shorter of the request's deadline and one attempt's limit goes to the upstream, with its own error", async () => {
  const upstream = fakeUpstream(() => answer(COMPLETION));
  const handler = createLlmHandler(aiBackend(LLMA), testDeps(upstream));
  const exchange = new TestExchange(Buffer.from(JSON.stringify(CHAT)));
  exchange.deadlineAtMs = performance.now() + 60_000;
  await handler(exchange);
  exchange.backendTimeoutMs = 10;
  await handler(exchange);
  const [first, second] = upstream.sent.map(({ request }) => request);
  assert.equal(first?.deadlineAtMs, exchange.deadlineAtMs);
  assert.equal(first?.timeoutCode, "request_timeout");
  assert.ok((second?.deadlineAtMs ?? Infinity) < exchange.deadlineAtMs);
  assert.equal(second?.timeoutCode, "backend_timeout");
});

test("a provider that speaks no suitable format is refused", async () => {
  const failure = await refusal({ key: "custom", host: "a.test", formats: [{ type: "Responses" }] }, {});
  assert.equal(failure.code, "llm_conversion_unsupported");
});

test("a tool whose name Claude does not take has another one there, and its own in answers and streams", async () => {
  const tools = [{ type: "function", function: { name: "files.read" } }];
  const call = { type: "tool_use", id: "c", name: "files_read", input: {} };
  const whole = answer({ id: "1", model: "m", content: [call], stop_reason: "tool_use", usage: {} });
  const { reply, sentBody } = await run(LLME, { body: { ...CHAT, tools }, response: whole });
  assert.deepEqual(
    (sentBody["tools"] as { name: string }[]).map(({ name }) => name),
    ["files_read"],
  );
  assert.match((await readBody(reply.body)).text, /"name":"files\.read"/);
  const events = [
    { type: "message_start", message: { id: "1", model: "m" } },
    { type: "content_block_start", index: 0, content_block: call },
    { type: "message_delta", delta: { stop_reason: "tool_use" } },
  ].map((event) => `data: ${JSON.stringify(event)}\n\n`);
  const streamed = answer(events.join(""), "text/event-stream");
  const { reply: stream } = await run(LLME, { body: { ...CHAT, tools, stream: true }, response: streamed });
  assert.match((await readBody(stream.body)).text, /"name":"files\.read"/);
});
