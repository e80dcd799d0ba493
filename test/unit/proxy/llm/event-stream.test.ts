/** The parser of AWS event streams: types of frames, damage, limits, and independence of chunking. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { EventStreamParser } from "../../../../src/proxy/llm/stream/event-stream.ts";
import {
  encodeEvent,
  encodeException,
  encodeFrame,
  frameOf,
} from "../../../support/servers/llm/event-stream-frames.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

type Frame = [type: string, data: string];

function parse(chunks: readonly Buffer[], limit = 4096): Frame[] {
  const frames: Frame[] = [];
  const parser = new EventStreamParser(limit, (data, type) =>
    frames.push([type, Buffer.from(data, "latin1").toString("utf8")]),
  );
  for (const chunk of chunks) {
    // The parser may not rely on a chunk after `push`: its owner is free to reuse the memory.
    const reused = Buffer.from(chunk);
    parser.push(reused);
    reused.fill(0x21);
  }
  parser.end();
  return frames;
}

/** Returns the reason of a refusal. */
function refusal(chunks: readonly Buffer[], limit?: number): string {
  try {
    parse(chunks, limit);
  } catch (error) {
    assert.ok(error instanceof ProxyError);
    assert.equal(error.code, "llm_response_invalid");
    return String(error.detail);
  }
  return "";
}

const HELLO = encodeEvent("contentBlockDelta", { delta: { text: "zwölf ☂" } });

test("events and exceptions carry their type and their payload", () => {
  const unmodelled = { ":message-type": "error", ":error-code": "InternalError", ":error-message": 'a "höhle"' };
  assert.deepEqual(parse([HELLO, encodeException("throttlingException", "slow down"), encodeFrame(unmodelled, "")]), [
    ["contentBlockDelta", '{"delta":{"text":"zwölf ☂"}}'],
    ["exception:throttlingException", '{"message":"slow down"}'],
    ["exception:InternalError", '{"message":"a \\"höhle\\""}'],
  ]);
});

test("events with the headers of the one before have its type, and exceptions have their own", () => {
  const other = [encodeEvent("a", {}), encodeEvent("b", {}), encodeException("c", "x"), encodeEvent("b", {})];
  assert.deepEqual(
    parse(other).map(([type]) => type),
    ["a", "b", "exception:c", "b"],
  );
});

test("headers of every type are skipped, an empty payload is allowed", () => {
  const values: number[][] = [
    [0],
    [1],
    [2, 1],
    [3, 1, 1],
    [4, 1, 1, 1, 1],
    [5, 1, 1, 1, 1, 1, 1, 1, 1],
    [6, 0, 2, 9, 9],
  ];
  values.push([8, ...Buffer.alloc(8, 3)], [9, ...Buffer.alloc(16, 4)]);
  const headers: Buffer[] = values.map((value, at) => Buffer.from([1, 97 + at, ...value]));
  const named = encodeFrame({ ":message-type": "event", ":event-type": "x" }, "");
  headers.push(named.subarray(12, -4));
  assert.deepEqual(parse([frameOf(Buffer.concat(headers), Buffer.alloc(0))]), [["x", ""]]);
});

test("a flipped bit anywhere is refused", () => {
  for (let at = 0; at < HELLO.length; at++) {
    const damaged = Buffer.from(HELLO);
    damaged[at] = (damaged[at] ?? 0) ^ 0x10;
    assert.match(refusal([damaged, HELLO]), /checksum|contradict/, `byte ${at}`);
  }
});

test("of frames that arrive together those before a damaged one are read", () => {
  const frames = ["a", "b", "c"].map((type) => encodeEvent(type, { type }));
  const [first = HELLO, second = HELLO] = frames;
  for (let at = 0; at < second.length; at++) {
    const chunk = Buffer.concat(frames);
    const damaged = first.length + at;
    chunk[damaged] = (chunk[damaged] ?? 0) ^ 0x10;
    const types: string[] = [];
    const parser = new EventStreamParser(4096, (_data, type) => types.push(type));
    // A length that has grown makes the parser wait for the rest, until the checksum of the lengths fails.
    assert.throws(() => parser.push(chunk), { code: "llm_response_invalid" }, `byte ${at}`);
    assert.deepEqual(types, ["a"], `byte ${at}`);
  }
});

test("lengths that lie, damaged headers and unknown messages are refused under right checksums", () => {
  assert.match(refusal([HELLO.subarray(0, -1)]), /ends inside a frame/);
  assert.match(refusal([HELLO.subarray(0, 11)]), /ends inside a frame/);
  assert.match(refusal([frameOf(Buffer.alloc(131_073), Buffer.alloc(0))], 1e6), /contradict each other/);
  assert.match(refusal([HELLO], HELLO.length - 1), /longer than/);
  for (const headers of [[5], [1], [1, 97], [1, 97, 10], [1, 97, 7, 0, 1], [1, 97, 7, 0], [1, 97, 9, 0], [0, 255]])
    assert.match(refusal([frameOf(Buffer.from(headers), Buffer.alloc(0))]), /damaged headers/, String(headers));
  assert.match(refusal([encodeFrame({ ":event-type": "x" }, "{}")]), /no known message type/);
  assert.match(refusal([encodeFrame({ ":message-type": "other" }, "{}")]), /no known message type/);
});

test("any chunking of a stream gives the same frames", () => {
  const frame = fc.oneof(
    fc.tuple(fc.string(), fc.jsonValue()).map(([type, value]) => encodeEvent(type, { value })),
    fc.string().map((text) => encodeException("validationException", text)),
  );
  assertProperty(
    fc.property(fc.array(frame, { maxLength: 8 }), fc.array(fc.nat(4000), { maxLength: 12 }), (frames, cuts) => {
      const bytes = Buffer.concat(frames);
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
      const chunks = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
      const single = Array.from(bytes, (byte) => Buffer.of(byte));
      const expected = parse([bytes], 65_536);
      assert.equal(expected.length, frames.length);
      assert.deepEqual(parse(chunks, 65_536), expected);
      assert.deepEqual(parse(single, 65_536), expected);
    }),
  );
});

test("any bytes give frames or a refusal", () => {
  assertProperty(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.uint8Array({ maxLength: 60 }), (headers, payload) => {
      refusal([Buffer.from(headers)]);
      refusal([frameOf(Buffer.from(headers), Buffer.from(payload))]);
    }),
    { numRuns: 500 },
  );
});
