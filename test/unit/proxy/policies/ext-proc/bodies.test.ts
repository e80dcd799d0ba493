import assert from "node:assert/strict";
import { test } from "node:test";
import type { BodySink } from "../../../../../src/proxy/exchange/body.ts";
import { SplicedBody } from "../../../../../src/proxy/policies/ext-proc/bodies.ts";
import { ChunkStream } from "../../../../support/gateway/exchange.ts";

/** A reader that takes one chunk and then wants to be asked again. */
function slowSink(): BodySink & { readonly heard: string[] } {
  const heard: string[] = [];
  return {
    heard,
    data: (chunk) => {
      heard.push(String(chunk));
      return false;
    },
    end: (trailers) => void heard.push(`end ${trailers.join(" ")}`.trim()),
    error: ({ message }) => void heard.push(`error ${message}`),
  };
}

for (const { title, chunks, skip, rest } of [
  { title: "in front of trailers", chunks: [], skip: 0, rest: [["end x-sum 1"]] },
  { title: "in front of a rest", chunks: ["abc", "def"], skip: 4, rest: [["ef"], ["end x-sum 1"]] },
  { title: "instead of all", chunks: ["ab", "cd"], skip: 4, rest: [["end x-sum 1"]] },
])
  test(`a replaced start ${title} waits for a reader without room, and nothing is lost`, () => {
    const body = new SplicedBody(new ChunkStream(chunks, ["x-sum", "1"]), skip, Buffer.from("new"));
    const sink = slowSink();
    body.read(sink);
    const expected = ["new"];
    assert.deepEqual(sink.heard, expected);
    for (const each of rest) {
      body.resume();
      expected.push(...each);
      assert.deepEqual(sink.heard, expected);
    }
  });
