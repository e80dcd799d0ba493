import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { BodyBuffersSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import type { Reply } from "../../../../src/proxy/exchange/exchange.ts";
import { responseBuffer } from "../../../../src/proxy/policies/response-buffer.ts";
import { ChunkStream, makeDeps, makeExchange, makeReply, readAll } from "../../../support/gateway/exchange.ts";

type Spec = MessageInitShape<typeof BodyBuffersSchema>;

/** Runs a response through the policy; returns the response, and the limit for policies that read its body. */
async function runBuffered(spec: Spec, parts: Partial<Reply>): Promise<{ reply: Reply; limitBytes: number }> {
  const exchange = makeExchange();
  const policy = responseBuffer.compile(create(BodyBuffersSchema, spec), makeDeps());
  const reply = await policy(exchange, () => makeReply(parts));
  return { reply, limitBytes: exchange.responseLimitBytes };
}

function assertTooLarge(error: unknown): boolean {
  assert.ok(error instanceof ProxyError);
  assert.equal(error.code, "response_too_large");
  assert.equal(error.status, 502);
  assert.equal(error.text, "");
  return true;
}

test("a streamed body within the limit is whole when the policy returns", async () => {
  const body = new ChunkStream(["1234", "5678"]);
  const { reply, limitBytes } = await runBuffered({ response: { maxBytes: 8 } }, { body });
  assert.deepEqual(reply.body, Buffer.from("12345678"));
  assert.equal(limitBytes, 8);
});

test("a streamed body beyond the limit gives 502, and its source is destroyed", async () => {
  const body = new ChunkStream(["1234", "5678"]);
  await assert.rejects(runBuffered({ response: { maxBytes: 7 } }, { body }), assertTooLarge);
  assert.ok(body.destroyed);
});

test("a body in memory beyond the limit gives 502", async () => {
  await assert.rejects(runBuffered({ response: { maxBytes: 3 } }, { body: Buffer.from("1234") }), assertTooLarge);
});

test("a policy that fails open passes a longer body on from its first byte", async () => {
  for (const body of [new ChunkStream(["1234", "5678"]), Buffer.from("12345678")]) {
    const { reply } = await runBuffered({ response: { maxBytes: 5, failOpen: true } }, { body });
    assert.equal((await readAll(reply.body)).toString(), "12345678");
  }
});

test("without a size the limit of the listener applies", async () => {
  const { responseLimitBytes } = makeExchange();
  const { limitBytes } = await runBuffered({ response: {} }, { body: Buffer.alloc(responseLimitBytes) });
  assert.equal(limitBytes, responseLimitBytes);
  await assert.rejects(runBuffered({ response: {} }, { body: Buffer.alloc(responseLimitBytes + 1) }), assertTooLarge);
});

for (const { name, spec, status } of [
  { name: "a policy for requests", spec: { request: { maxBytes: 1 } }, status: 200 },
  { name: "a switch of protocols", spec: { response: { maxBytes: 1 } }, status: 101 },
])
  test(`${name} leaves the response a stream`, async () => {
    const body = new ChunkStream(["1234"]);
    const { reply } = await runBuffered(spec, { status, body });
    assert.equal(reply.body, body);
  });
