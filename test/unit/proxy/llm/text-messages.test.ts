/** Text messages in the bytes of a WebSocket: fragments, lengths, what is skipped, and any chunking. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { assertProperty } from "../../../support/fixtures/seed.ts";
import { TextMessages } from "../../../../src/proxy/llm/stream/text-messages.ts";

interface FrameOptions {
  readonly isFinal?: boolean;
  readonly isCompressed?: boolean;
  readonly isMasked?: boolean;
}

function frame(opcode: number, payload: string, options: FrameOptions = {}): Buffer {
  const { isFinal = true, isCompressed = false, isMasked = false } = options;
  const bytes = Buffer.from(payload);
  const size = bytes.length < 126 ? 0 : bytes.length < 65_536 ? 2 : 8;
  const head = Buffer.alloc(2 + size);
  head[0] = (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode;
  head[1] = (isMasked ? 0x80 : 0) | (size === 0 ? bytes.length : size === 2 ? 126 : 127);
  if (size === 2) head.writeUInt16BE(bytes.length, 2);
  if (size === 8) head.writeBigUInt64BE(BigInt(bytes.length), 2);
  return Buffer.concat([head, ...(isMasked ? [Buffer.alloc(4)] : []), bytes]);
}

const LONG = "x".repeat(70_000);
const STREAM = Buffer.concat([
  frame(1, "one"),
  frame(1, ""),
  frame(1, "tw", { isFinal: false }),
  frame(9, "ping"),
  frame(0, "", { isFinal: false }),
  frame(0, "o"),
  frame(2, "binary", { isFinal: false }),
  frame(0, "more"),
  frame(1, "packed", { isCompressed: true }),
  frame(1, "masked", { isMasked: true }),
  frame(1, "y".repeat(300)),
  frame(1, LONG),
  frame(1, "z".repeat(80_000), { isFinal: false }),
  frame(0, "too long"),
  frame(1, "last"),
]);
const EXPECTED = ["one", "", "two", "y".repeat(300), LONG, "last"];

test("text messages are found whatever the chunking, and others are skipped whole", () => {
  assertProperty(
    fc.property(fc.array(fc.nat(STREAM.length), { maxLength: 30 }), (places) => {
      const found: string[] = [];
      const messages = new TextMessages(75_000, (text) => found.push(text.toString()));
      const ends = [0, ...places.sort((a, b) => a - b), STREAM.length];
      ends.slice(1).forEach((end, at) => messages.push(STREAM.subarray(ends[at], end)));
      assert.deepEqual(found, EXPECTED);
    }),
  );
});
