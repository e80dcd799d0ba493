/** Memory that is used again is never in two hands at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BLOCK_BYTES, giveBlock, takeBlock } from "../../../src/lib/blocks.ts";

test("a block that came back is used again, and one that did not is nobody else's", () => {
  const first = takeBlock(10_000);
  const second = takeBlock(BLOCK_BYTES);
  assert.equal(first.length, 10_000);
  assert.notEqual(first.buffer, second.buffer);
  giveBlock(first);
  const third = takeBlock(20_000);
  assert.equal(third.buffer, first.buffer);
  assert.notEqual(takeBlock(1).buffer, second.buffer);
});

test("a block that is given back twice is used by one", () => {
  const block = takeBlock(100);
  giveBlock(block);
  giveBlock(block);
  assert.notEqual(takeBlock(100).buffer, takeBlock(100).buffer);
});

test("what is no block is left alone", () => {
  const own = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  giveBlock(own);
  assert.notEqual(takeBlock(BLOCK_BYTES).buffer, own.buffer);
});
