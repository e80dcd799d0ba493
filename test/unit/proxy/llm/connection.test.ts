/** Where a provider is, how it is signed in to, and answers that arrive packed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  BackendHttpSchema,
  BackendSettingsSchema,
  HttpVersion,
  type BackendSettings,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { PLAIN, type UpstreamTarget } from "../../../../src/proxy/upstream/dial/connection-settings.ts";
import type { BackendDeps, PickedEndpoint } from "../../../../src/proxy/backends/handler.ts";
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
  type Sent,
} from "../../../support/gateway/llm-harness.ts";
import { testMembers } from "../../../support/gateway/endpoints.ts";

const MESSAGE = {
  id: "1",
  model: "m-1",
  content: [{ type: "text", text: "hello" }],
  stop_reason: "end_turn",
  usage: { input_tokens: 3, output_tokens: 2 },
};

function answer(bytes: Buffer | object, ...headers: string[]): UpstreamResponse {
  const body = Buffer.isBuffer(bytes) ? bytes : Buffer.from(JSON.stringify(bytes));
  const type = headers.includes("content-type") ? [] : ["content-type", "application/json"];
  return { status: 200, headers: new HeaderList([...type, ...headers]), body: streamFrom([body]) };
}

async function run(
  provider: ProviderInit,
  response: UpstreamResponse,
  deps: Partial<BackendDeps> = {},
  more: object = {},
) {
  const upstream = fakeUpstream(() => response);
  const chat = { model: "m", messages: [{ role: "user", content: "hi" }], ...more };
  const exchange = new TestExchange(
    Buffer.from(JSON.stringify(chat)),
    new HeaderList(["Host", "gateway.test", "Authorization", "Bearer client", "X-Api-Key", "client"]),
  );
  const charged: number[] = [];
  exchange.tokenGates.push({ admit: () => undefined, settle: (total) => void charged.push(total) });
  const reply = await createLlmHandler(aiBackend(provider), { ...testDeps(upstream), ...deps })(exchange);
  return { reply, charged, sent: upstream.sent[0] as Sent };
}

const CUSTOM: ProviderInit = { key: "custom", identity: "custom", backend: "service/n/models/80" };

/** Dependencies with a backend behind the provider. @param endpoint what its destination picks */
function depsBehind(
  endpoint: () => PickedEndpoint,
  own: MessageInitShape<typeof BackendSettingsSchema> = {},
): { readonly deps: Partial<BackendDeps>; readonly asked: string[]; readonly compiled: BackendSettings[] } {
  const asked: string[] = [];
  const compiled: BackendSettings[] = [];
  const behind: BackendDeps["behind"] = (key) => {
    asked.push(key);
    return {
      settings: create(BackendSettingsSchema, own),
      destination: (settings) => {
        compiled.push(settings);
        return { host: "models.n.svc", version: HttpVersion.UNSPECIFIED, pick: endpoint };
      },
    };
  };
  return { deps: { behind }, asked, compiled };
}

const BEHIND: UpstreamTarget = { ...PLAIN, host: "127.0.0.9", port: 8000, unixPath: "" };

test("a provider with a backend behind it sends the call to its endpoint, with the client's authority", async () => {
  const record = testMembers().record("endpoint");
  const { deps, asked } = depsBehind(() => ({ target: BEHIND, state: { record, rule: undefined } }));
  const { sent } = await run({ ...CUSTOM, formats: [{ type: "Completions" }] }, answer({}), deps);
  assert.deepEqual(asked, [CUSTOM.backend]);
  assert.equal(sent.target, BEHIND, "the target of the endpoint itself, by which its pool is found");
  assert.deepEqual([record.total, record.pending, record.health], [1, 1, 1], "the endpoint counts the call");
  assert.equal(sent.request.headers.get("host"), "gateway.test");
});

test("the settings of the backend behind a provider win over those of the provider", async () => {
  const own = { http: create(BackendHttpSchema, { version: HttpVersion.HTTP2 }) };
  const { deps, compiled } = depsBehind(() => ({ target: BEHIND, state: undefined }), own);
  const provider = { ...CUSTOM, credential: "of-the-provider", formats: [{ type: "Completions" }] };
  const { sent } = await run(provider, answer({}), deps);
  assert.equal(sent.request.version, "http2");
  assert.equal(sent.request.headers.get("authorization"), "Bearer of-the-provider");
  assert.equal(compiled[0]?.http?.version, HttpVersion.HTTP2);
});

test("a backend behind a provider that has no endpoint refuses the request with its own error", async () => {
  const { deps } = depsBehind(() => {
    throw new ProxyError("endpoint_unavailable");
  });
  const call = run({ ...CUSTOM, formats: [{ type: "Completions" }] }, answer({}), deps);
  await assert.rejects(call, { code: "endpoint_unavailable" });
});

test("a custom provider of messages gets them, and the client its completion", async () => {
  const provider: ProviderInit = {
    key: "custom",
    identity: "custom",
    host: "a.test",
    port: 80,
    formats: [{ type: "Messages" }],
  };
  const { sent, reply, charged } = await run(provider, answer(MESSAGE));
  assert.equal(sent.request.path, "/v1/messages");
  assert.deepEqual(JSON.parse(String(sent.request.body)), {
    model: "m",
    max_tokens: 4096,
    messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
  });
  const completion = JSON.parse((await readBody(reply.body)).text) as { choices: { message: { content: string } }[] };
  assert.equal(completion.choices[0]?.message.content, "hello");
  assert.deepEqual(charged, [5]);
});

test("Completions is preferred when a custom provider lists both, in whatever order", async () => {
  const formats = [{ type: "Messages" }, { type: "Completions" }];
  const { sent } = await run({ key: "custom", host: "a.test", port: 80, formats }, answer({}));
  assert.equal(sent.request.path, "/v1/chat/completions");
});

test("a credential of llme stays where its configuration puts it, and no client credential stays beside it", async () => {
  const headers = async (location: NonNullable<ProviderInit["location"]>): Promise<HeaderList> =>
    (await run({ key: "llme", identity: "anthropic", credential: "k", location }, answer(MESSAGE))).sent.request
      .headers;
  const own = await headers({ case: "header", value: { name: "X-Api-Key", prefix: "" } });
  assert.equal(own.get("x-api-key"), "k");
  assert.equal(own.get("authorization"), undefined);
  const bearer = await headers({ case: "header", value: { name: "Authorization", prefix: "Bearer " } });
  assert.equal(bearer.get("authorization"), "Bearer k");
  assert.equal(bearer.get("x-api-key"), undefined);
});

const COMPLETION_EVENTS =
  'data: {"model":"m-1","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n' +
  'data: {"model":"m-1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\ndata: [DONE]\n\n';
const MESSAGE_EVENTS = [
  { type: "message_start", message: { id: "i", model: "m", usage: { input_tokens: 3, output_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
  { type: "message_stop" },
]
  .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join("");

for (const [coding, pack] of [
  ["gzip", gzipSync],
  ["br", brotliCompressSync],
] as const)
  test(`event streams that come packed by ${coding} leave unpacked and are charged`, async () => {
    const packed = ["content-type", "text/event-stream", "content-encoding", coding];
    const streamed = { stream: true, stream_options: { include_usage: true } };
    const passed = await run({ key: "llma" }, answer(pack(COMPLETION_EVENTS), ...packed), {}, streamed);
    assert.equal((await readBody(passed.reply.body)).text, COMPLETION_EVENTS);
    assert.equal(passed.reply.headers.get("content-encoding"), undefined);
    assert.deepEqual(passed.charged, [5]);
    const translated = await run({ key: "llme" }, answer(pack(MESSAGE_EVENTS), ...packed), {}, streamed);
    const { text, error } = await readBody(translated.reply.body);
    assert.equal(error, undefined);
    assert.match(text, /"content":"hello"/);
    assert.match(text, /data: \[DONE\]\n\n$/);
    assert.deepEqual(translated.charged, [5]);
  });

test("a packed event stream that is cut off is a broken answer, never a clean end", async () => {
  const bytes = gzipSync(COMPLETION_EVENTS);
  const packed = ["content-type", "text/event-stream", "content-encoding", "gzip"];
  const cut = answer(bytes.subarray(0, bytes.length - 9), ...packed);
  const { reply } = await run({ key: "llma" }, cut, {}, { stream: true });
  const { error } = await readBody(reply.body);
  assert.ok(error instanceof ProxyError && error.code === "llm_response_invalid");
});
