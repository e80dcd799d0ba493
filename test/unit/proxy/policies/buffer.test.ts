import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { BodyBuffersSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Body } from "../../../../src/proxy/exchange/body.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { buffer } from "../../../../src/proxy/policies/buffer.ts";
import { ChunkStream, makeDeps, makeExchange, makeReply } from "../../../support/gateway/exchange.ts";

/** Limit of a request that no policy has changed. */
const DEFAULT_BYTES = makeExchange().requestLimitBytes;

/** Runs a request through the policy and returns the body and the limit that the next policy sees. */
async function runBuffered(spec: MessageInitShape<typeof BodyBuffersSchema>, body: Body) {
  const exchange = makeExchange({ body });
  const reply = makeReply();
  const policy = buffer.compile(create(BodyBuffersSchema, spec), makeDeps());
  assert.equal(await policy(exchange, () => reply), reply);
  return { body: exchange.requestBody, limitBytes: exchange.requestLimitBytes };
}

test("a body of several chunks is whole before the next policy runs", async () => {
  const { body, limitBytes } = await runBuffered({ request: { maxBytes: 8 } }, new ChunkStream(["1234", "5678"]));
  assert.deepEqual(body, Buffer.from("12345678"));
  assert.equal(limitBytes, 8);
});

test("a body of one byte too many is refused with 413 and an empty text", async () => {
  await assert.rejects(runBuffered({ request: { maxBytes: 7 } }, new ChunkStream(["1234", "5678"])), (error) => {
    assert.ok(error instanceof ProxyError);
    assert.equal(error.code, "body_too_large");
    assert.equal(error.status, 413);
    assert.equal(error.text, "");
    return true;
  });
});

test("a policy that fails open lets a body pass that is too long", async () => {
  const { limitBytes } = await runBuffered({ request: { maxBytes: 2, failOpen: true } }, new ChunkStream(["1234"]));
  assert.equal(limitBytes, 2);
});

test("without a size the limit of the listener stays", async () => {
  const { body, limitBytes } = await runBuffered({ request: {} }, new ChunkStream(["x".repeat(DEFAULT_BYTES)]));
  assert.equal(limitBytes, DEFAULT_BYTES);
  assert.ok(Buffer.isBuffer(body));
  await assert.rejects(runBuffered({ request: {} }, new ChunkStream(["x".repeat(DEFAULT_BYTES + 1)])), ProxyError);
});

test("a request without a body gets the limit for bodies that later policies make", async () => {
  assert.deepEqual(await runBuffered({ request: { maxBytes: 2 } }, null), { body: null, limitBytes: 2 });
});

test("a policy for responses leaves the request as it is", async () => {
  const body = new ChunkStream(["1234"]);
  assert.deepEqual(await runBuffered({ response: { maxBytes: 1 } }, body), { body, limitBytes: DEFAULT_BYTES });
});
