/** Frames of a WebSocket that are read and printed again: any chunking, masks, and what the standard forbids. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { printMessage, SessionReader } from "../../../../src/proxy/llm/stream/web-socket.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void; // the function that the flag adds

interface FrameOptions {
  readonly opcode?: number;
  readonly isFinal?: boolean;
  readonly isMasked?: boolean;
  readonly reserved?: number;
}

function frame(payload: string, { opcode = 1, isFinal = true, isMasked = false, reserved = 0 }: FrameOptions = {}) {
  const whole = printMessage({ payload: Buffer.from(payload), isBinary: false }, isMasked);
  whole[0] = (isFinal ? 0x80 : 0) | reserved | opcode;
  return whole;
}

/** Returns what a reader finds: texts of messages, "binary", "long", "control", or the code and reason of a violation. */
function read(bytes: Buffer, isMasked: boolean, places: readonly number[] = [], maxBytes = 1_000): string[] {
  const reader = new SessionReader(isMasked, maxBytes);
  const ends = [0, ...[...places].sort((a, b) => a - b), bytes.length];
  return ends.slice(1).flatMap((end, at) =>
    reader.read(bytes.subarray(ends[at], end)).map((found) => {
      if (found.kind === "violation") return `${found.code} ${found.reason}`;
      if (found.kind === "control") return `control ${found.isClose ? "close" : found.bytes.length}`;
      return `${found.isBinary ? "binary " : ""}${found.payload?.toString() ?? "too long"}`;
    }),
  );
}

for (const isMasked of [false, true])
  test(`messages are found whatever the chunking (${isMasked ? "client" : "server"})`, () => {
    const stream = Buffer.concat([
      frame("one", { isMasked }),
      frame("", { isMasked }),
      frame("tw", { isFinal: false, isMasked }),
      frame("ping", { opcode: 9, isMasked }),
      frame("o", { opcode: 0, isMasked }),
      frame("bytes", { opcode: 2, isMasked }),
      frame("y".repeat(300), { isMasked }),
      frame("z".repeat(70_000), { isMasked }),
      frame("z".repeat(900), { isFinal: false, isMasked }),
      frame("z".repeat(200), { opcode: 0, isMasked }),
      frame("last", { isMasked }),
      frame("", { opcode: 8, isMasked }),
    ]);
    const ping = `control ${isMasked ? 10 : 6}`;
    const found = [
      "one",
      "",
      ping,
      "two",
      "binary bytes",
      "y".repeat(300),
      "too long",
      "too long",
      "last",
      "control close",
    ];
    assertProperty(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 30 }), (places) => {
        assert.deepEqual(read(stream, isMasked, places), found);
      }),
    );
  });

for (const isMasked of [false, true])
  test(`a message in fragments of one byte is one block of memory (${isMasked ? "client" : "server"})`, () => {
    const bytes = 100_000;
    const first = frame("", { isMasked, isFinal: false });
    const one = frame("x", { opcode: 0, isMasked, isFinal: false });
    const reader = new SessionReader(isMasked, bytes);
    reader.read(first);
    collectGarbage();
    const before = process.memoryUsage();
    for (let at = 0; at < bytes; at++) assert.deepEqual(reader.read(one), []);
    collectGarbage();
    const after = process.memoryUsage();
    const grown = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
    assert.ok(grown < 20 * bytes, `${grown} bytes`);
    const [whole] = reader.read(frame("", { opcode: 0, isMasked }));
    assert.equal(whole?.kind === "message" && whole.payload?.toString(), "x".repeat(bytes));
  });

test("what is printed is read again", () => {
  assertProperty(
    fc.property(fc.string({ maxLength: 400 }), fc.boolean(), fc.boolean(), (text, isMasked, isBinary) => {
      const bytes = printMessage({ payload: Buffer.from(text), isBinary }, isMasked);
      assert.deepEqual(read(bytes, isMasked, [], 10_000), [`${isBinary ? "binary " : ""}${text}`]);
    }),
  );
});

const FORBIDDEN: readonly (readonly [name: string, found: string, bytes: Buffer])[] = [
  ["a reserved bit", "1002 a reserved bit", frame("a", { reserved: 0x40 })],
  ["a masked frame of a server", "1002 a masked frame of a server", frame("a", { isMasked: true })],
  ["an unknown opcode", "1002 an unknown opcode", frame("a", { opcode: 3 })],
  ["an unknown control frame", "1002 a bad control frame", frame("a", { opcode: 11 })],
  ["a control frame in fragments", "1002 a bad control frame", frame("a", { opcode: 9, isFinal: false })],
  ["a long control frame", "1002 a bad control frame", frame("a".repeat(126), { opcode: 9 })],
  ["a fragment of nothing", "1002 a bad order of fragments", frame("a", { opcode: 0 })],
  [
    "a message inside another",
    "1002 a bad order of fragments",
    Buffer.concat([frame("a", { isFinal: false }), frame("b")]),
  ],
  [
    "a length beyond all numbers",
    "1002 a bad length",
    Buffer.from([0x81, 127, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
  ],
  ["text that is not UTF-8", "1007 text that is not UTF-8", Buffer.from([0x81, 2, 0xc3, 0x28])],
  [
    "text that is not UTF-8 in fragments",
    "1007 text that is not UTF-8",
    Buffer.from([0x01, 2, 0x61, 0xed, 0x80, 2, 0xa0, 0x80]),
  ],
];

for (const [name, found, bytes] of FORBIDDEN)
  test(`${name} is the last that is read`, () => {
    const whole = Buffer.concat([frame("before"), bytes, frame("behind")]);
    for (let cut = 0; cut <= whole.length; cut++) {
      const seen = read(whole, false, [cut]);
      assert.deepEqual(seen.slice(0, 2), ["before", found], `cut at ${cut}`);
      assert.ok(!seen.includes("behind"));
    }
  });

test("a letter may be split between fragments, and bytes that are no text are binary", () => {
  const bytes = Buffer.from([0x01, 1, 0xc3, 0x80, 1, 0xa4, 0x82, 1, 0xff]);
  assert.deepEqual(read(bytes, false), ["ä", "binary \ufffd"]);
});

test("a frame of a client has to be masked", () => {
  assert.deepEqual(read(frame("a"), true), ["1002 a frame without a mask"]);
});
