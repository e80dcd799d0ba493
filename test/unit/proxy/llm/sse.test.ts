/** The event stream parser: line ends, comments, byte order mark, limits, and independence of chunking. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { SseParser } from "../../../../src/proxy/llm/stream/sse.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

function parse(chunks: readonly Buffer[], limit = 4096): string[] {
  const events: string[] = [];
  const parser = new SseParser(limit, (data) => void events.push(Buffer.from(data, "latin1").toString("utf8")));
  for (const chunk of chunks) {
    // The parser may not rely on a chunk after `push`: its owner is free to reuse the memory.
    const reused = Buffer.from(chunk);
    parser.push(reused);
    reused.fill(0x21);
  }
  parser.end();
  return events;
}

test("lines may end in LF, CR or CRLF", () => {
  for (const end of ["\n", "\r", "\r\n"])
    assert.deepEqual(parse([Buffer.from(["event: a", "data: 1", "", "data: 2", "", ""].join(end))]), ["1", "2"]);
});

test("comments, names, ids and a byte order mark are skipped and data lines are joined", () => {
  const text = "\uFEFF: hello\nid: 7\nevent: e\nretry: 1\ndata: one\ndata:two\ndata\n\n:\n\n";
  assert.deepEqual(parse([Buffer.from(text)]), ["one\ntwo\n"]);
});

test("an event without data is none", () => {
  assert.deepEqual(parse([Buffer.from("data:\n\ndata: \n\ndata\n\nevent: ping\n\ndata: 1\n\ndata:")]), ["1"]);
});

test("an event without its closing blank line still counts", () => {
  assert.deepEqual(parse([Buffer.from("data: [DONE]")]), ["[DONE]"]);
});

test("an event beyond the limit is refused, in one line or in many", () => {
  const refused = (error: unknown): boolean => error instanceof ProxyError && error.code === "llm_response_invalid";
  assert.throws(() => parse([Buffer.from(`data: ${"x".repeat(300)}`)], 200), refused);
  assert.throws(() => parse([Buffer.from("data: 123456789\n".repeat(40))], 200), refused);
  assert.equal(parse([Buffer.from("data: 123456789\n\n".repeat(40))], 200).length, 40);
});

test("a reader that only looks on leaves out events beyond the limit and reads the others", () => {
  const long = ["x".repeat(300), "x\ndata: ".repeat(150)];
  const bytes = Buffer.from(["1", ...long, "2", ...long, "3"].map((data) => `data: ${data}\n\n`).join(""));
  for (const size of [1, 7, 100, bytes.length]) {
    const events: string[] = [];
    const parser = new SseParser(200, (data) => void events.push(data), "skip");
    for (let at = 0; at < bytes.length; at += size) parser.push(bytes.subarray(at, at + size));
    parser.end();
    assert.deepEqual(events, ["1", "2", "3"], `chunks of ${size}`);
  }
});

test("any chunking of a stream gives the same events", () => {
  const line = fc.constantFrom('data: {"a":1}', "data: zwölf ☂", "event: x", ": note", "", "data", "id: 1", "junk");
  const stream = fc.array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n")), { maxLength: 30 });
  assertProperty(
    fc.property(stream, fc.boolean(), fc.array(fc.nat(400), { maxLength: 12 }), (lines, mark, cuts) => {
      const bytes = Buffer.from((mark ? "\uFEFF" : "") + lines.map(([text, end]) => text + end).join(""));
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
      const chunks = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
      const single = Array.from(bytes, (byte) => Buffer.of(byte));
      assert.deepEqual(parse(chunks), parse([bytes]));
      assert.deepEqual(parse(single), parse([bytes]));
    }),
  );
});
