import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { codingOf, unpack, unpackStream } from "../../../../src/proxy/exchange/content-coding.ts";
import { readBody, streamFrom } from "../../../support/gateway/llm-harness.ts";

const GZIP = codingOf("gzip");
assert.ok(GZIP);
const MIB = 1_048_576;
const NO_LIMIT = 64 * MIB;
/** Packs to about a thousandth. */
const BOMB = gzipSync(Buffer.alloc(8 * MIB, 0x20));
const SMALL_BOMB = gzipSync(Buffer.alloc(MIB, 0x20));
const HONEST = Buffer.from(randomBytes(2 * MIB).toString("hex"));

test("what is packed better than 200 to 1 is refused beyond a mebibyte", async () => {
  assert.equal(await unpack(BOMB, GZIP, NO_LIMIT), undefined);
  assert.equal((await unpack(SMALL_BOMB, GZIP, NO_LIMIT))?.length, MIB);
  assert.equal(await unpack(SMALL_BOMB, GZIP, MIB - 1), undefined);
  assert.ok((await unpack(gzipSync(HONEST), GZIP, NO_LIMIT))?.equals(HONEST));
});

test("a flow that is packed better than that breaks off", async () => {
  const { text, error } = await readBody(unpackStream(streamFrom([BOMB]), GZIP, "llm_response_invalid"));
  assert.match(String(error?.message), /too large/);
  assert.ok(text.length <= 2 * MIB);
  const honest = await readBody(unpackStream(streamFrom([gzipSync(HONEST)]), GZIP, "llm_response_invalid"));
  assert.deepEqual([honest.error, honest.text.length], [undefined, HONEST.length]);
});
