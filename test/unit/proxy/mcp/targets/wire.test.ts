import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HeaderList } from "../../../../../src/lib/header-list.ts";
import { decodeHeaderValue, encodeHeaderValue } from "../../../../../src/proxy/mcp/message/header-value.ts";
import { readMessage } from "../../../../../src/proxy/mcp/message/message.ts";
import { EventParser } from "../../../../../src/proxy/mcp/targets/event-parser.ts";
import { withTraceContext } from "../../../../../src/proxy/mcp/targets/trace-context.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";

const STREAM =
  "\ufeffid: 1\r\ndata: a\r\ndata:b\r\n\r\n: comment\rdata: \u00e4\r\revent: ping\ndata: c\n\nid: 2\nretry: 250\ndata:\n\ndata: open";

test("events are the same however the stream is cut into pieces", () => {
  assertProperty(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 40 }), (sizes) => {
      const bytes = Buffer.from(STREAM);
      const events: string[][] = [];
      const parser = new EventParser(1_000, (data, type) => void events.push([data.toString(), type]));
      for (let at = 0, piece = 0; at < bytes.length; piece++) {
        const size = sizes[piece % sizes.length] ?? 1;
        parser.push(bytes.subarray(at, at + size));
        at += size;
      }
      assert.deepEqual(events, [
        ["a\nb", ""],
        ["\u00e4", ""],
        ["c", "ping"],
      ]);
      assert.deepEqual([parser.lastId, parser.retryMs], ["2", 250]);
    }),
  );
});

test("an event that exceeds the limit is refused before it is complete", () => {
  const parser = new EventParser(10, () => assert.fail("no event is complete"));
  assert.throws(() => parser.push(Buffer.from("data: 12345678901")), { rpcCode: -32_603 });
});

test("any text travels in a header and comes back", () => {
  assertProperty(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const value = encodeHeaderValue(text);
      assert.match(value, /^[\t\x20-\x7e]+$/);
      assert.equal(decodeHeaderValue(value), text);
    }),
  );
  assert.equal(encodeHeaderValue("get weather"), "get weather");
  assert.equal(decodeHeaderValue("=?base64?w?="), undefined);
});

test("the trace of a request is written into _meta, and nothing else changes", () => {
  const headers = new HeaderList(["traceparent", "00-a-b-01", "baggage", "k=v"]);
  const sent = (text: string): string => {
    const message = readMessage(Buffer.from(text));
    assert.ok("bytes" in message);
    return withTraceContext(message, headers).toString();
  };
  const trace = '"traceparent":"00-a-b-01","baggage":"k=v"';
  assert.equal(
    sent('{"jsonrpc":"2.0","id":1,"method":"m"}'),
    `{"params":{"_meta":{${trace}}},"jsonrpc":"2.0","id":1,"method":"m"}`,
  );
  assert.equal(
    sent('{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":12345678901234567890}}'),
    `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{${trace}},"a":12345678901234567890}}`,
  );
  assert.deepEqual(
    JSON.parse(sent('{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":"old","x":1}}}')).params
      ._meta,
    { traceparent: "00-a-b-01", baggage: "k=v", x: 1 },
  );
  const result = '{"jsonrpc":"2.0","id":1,"result":{}}';
  assert.equal(sent(result), result);
});
