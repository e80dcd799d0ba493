/** Answers and streams that the Converse format reads: bounded, complete, and the same whole or in pieces. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ProxyError } from "../../../../../src/proxy/exchange/errors.ts";
import type { AnswerEvent } from "../../../../../src/proxy/llm/conversation/events.ts";
import type { ProviderSide } from "../../../../../src/proxy/llm/formats/chat-format.ts";
import { converse } from "../../../../../src/proxy/llm/formats/converse/index.ts";
import type { JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";
import { EventStreamParser } from "../../../../../src/proxy/llm/stream/event-stream.ts";
import { streamOf, type BedrockAnswer } from "../../../../support/servers/llm/bedrock-stream.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";

const { readAnswer, readStream } = converse.provider as ProviderSide; // the format has this side

test("citations are told in the words of the family", () => {
  const cited = (location: JsonObject): unknown => {
    const block = {
      content: [{ text: "It is." }],
      citations: [{ title: "T", source: "s", sourceContent: [{ text: "is" }], location }],
    };
    const body = { output: { message: { content: [{ citationsContent: block }] } } };
    const [part] = readAnswer(body, { model: "m", toolNames: undefined }).choices[0]?.parts ?? [];
    return part?.kind === "text" ? part.citations?.[0]?.value : undefined;
  };
  const place = { documentIndex: 1, start: 2, end: 3 };
  const of = { cited_text: "is", document_title: "T", document_index: 1 };
  assert.deepEqual(cited({ documentChar: place }), {
    type: "char_location",
    ...of,
    start_char_index: 2,
    end_char_index: 3,
  });
  assert.deepEqual(cited({ documentPage: place }), {
    type: "page_location",
    ...of,
    start_page_number: 2,
    end_page_number: 3,
  });
  assert.deepEqual(cited({ documentChunk: place }), {
    type: "content_block_location",
    ...of,
    start_block_index: 2,
    end_block_index: 3,
  });
  assert.deepEqual(cited({ web: { url: "https://example.com" } }), {
    type: "web_search_result_location",
    cited_text: "is",
    title: "T",
    url: "https://example.com",
    encrypted_index: "",
  });
  assert.deepEqual(cited({ searchResultLocation: { searchResultIndex: 4, start: 0, end: 1 } }), {
    type: "search_result_location",
    cited_text: "is",
    title: "T",
    source: "s",
    search_result_index: 4,
    start_block_index: 0,
    end_block_index: 1,
  });
});

/** Reads a stream to the end. */
function readEvents(answer: BedrockAnswer, toolNames?: ReadonlyMap<string, string>): AnswerEvent[] {
  const reader = readStream({ model: "m", toolNames });
  const events: AnswerEvent[] = [];
  const parser = new EventStreamParser(1e6, (data, type) => {
    events.push(...reader.read(JSON.parse(Buffer.from(data, "latin1").toString()) as JsonObject, type));
  });
  for (const frame of streamOf(answer)) parser.push(frame);
  parser.end();
  return [...events, ...reader.end()];
}

/** Puts the parts of a stream together. */
function gather(events: readonly AnswerEvent[]): unknown[] {
  const parts: Record<string, unknown>[] = [];
  for (const event of events) {
    if (event.kind === "open") parts[event.part] = { ...event.opened };
    const part = "part" in event ? parts[event.part] : undefined;
    if (part === undefined) continue;
    const member = part["kind"] === "call" ? "arguments" : "text";
    if (event.kind === "delta") part[member] = String(part[member] ?? "") + event.text;
    if (event.kind === "signature") part["signature"] = event.signature;
  }
  return parts;
}

const BLOCK = fc.oneof(
  fc.string({ minLength: 1 }).map((text) => ({ text })),
  fc
    .record({ text: fc.string({ minLength: 1 }), signature: fc.stringMatching(/^[0-9a-f]{1,12}$/) })
    .map((reasoningText) => ({ reasoningContent: { reasoningText } })),
  fc.constant({ reasoningContent: { redactedContent: "YQ==" } }),
  fc
    .tuple(fc.stringMatching(/^[0-9a-f]{1,12}$/), fc.dictionary(fc.string(), fc.jsonValue()))
    .map(([toolUseId, input]) => ({
      toolUse: { toolUseId, name: "odd_name", input: JSON.parse(JSON.stringify(input)) as object },
    })),
);

test("a stream says the same as the whole answer", () => {
  const toolNames = new Map([["odd_name", "odd.name"]]);
  assertProperty(
    fc.property(fc.array(BLOCK, { maxLength: 6 }), (content) => {
      const body = {
        output: { message: { content } },
        stopReason: "max_tokens",
        usage: { inputTokens: 5, cacheReadInputTokens: 2, outputTokens: 3 },
      };
      const whole = readAnswer(JSON.parse(JSON.stringify(body)) as JsonObject, { model: "m", toolNames });
      const events = readEvents({ content, stopReason: "max_tokens", usage: body.usage }, toolNames);
      assert.deepEqual(gather(events), whole.choices[0]?.parts);
      assert.equal(events[0]?.kind, "start");
      assert.deepEqual(events.at(-2), { kind: "stop", choice: 0, stop: { reason: "length" } });
      assert.deepEqual(events.at(-1), { kind: "usage", usage: whole.facts.usage });
      assert.equal(whole.facts.usage?.inputTokens, 7);
    }),
  );
});

test("an exception in a stream is an error of its type", () => {
  const types = {
    throttlingException: "rate_limit_error",
    validationException: "invalid_request_error",
    modelStreamErrorException: "api_error",
  };
  for (const [name, type] of Object.entries(types)) {
    const last = readEvents({ exception: { type: name, message: "no" } }).at(-1);
    assert.deepEqual(last, { kind: "error", error: { message: "no", type } });
  }
  assert.match(
    JSON.stringify(readEvents({ exception: { type: "other", message: "" } }).at(-1)),
    /ended the stream with other/,
  );
});

test("any events are read, and every part is opened before it is used", () => {
  const NAMES = [
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
    "exception:x",
    "other",
  ];
  const delta = fc.oneof(
    fc.jsonValue(),
    fc.record({ text: fc.string() }),
    fc.record({ toolUse: fc.record({ input: fc.string() }) }),
    fc.record({
      reasoningContent: fc.oneof(
        fc.record({ text: fc.string() }),
        fc.record({ signature: fc.string() }),
        fc.record({ redactedContent: fc.string() }),
      ),
    }),
    fc.record({ citation: fc.dictionary(fc.string(), fc.jsonValue()) }),
  );
  const start = fc.oneof(
    fc.jsonValue(),
    fc.record({ toolUse: fc.record({ toolUseId: fc.string(), name: fc.string() }) }),
  );
  const event = fc.oneof(
    fc.dictionary(fc.string(), fc.jsonValue()),
    fc.record({ contentBlockIndex: fc.integer({ min: -1, max: 2 }), delta, start }),
  );
  assertProperty(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...NAMES), event), { maxLength: 30 }), (stream) => {
      const reader = readStream({ model: "m", toolNames: undefined });
      const open = new Set<number>();
      for (const [type, given] of stream)
        for (const read of reader.read(JSON.parse(JSON.stringify(given)) as JsonObject, type)) {
          if (read.kind === "open") open.add(read.part);
          else if ("part" in read) assert.ok(open.has(read.part));
          if (read.kind === "close") open.delete(read.part);
        }
    }),
    { numRuns: 300 },
  );
});

test("any JSON is an answer or a response that cannot be used", () => {
  const near = fc.record({
    output: fc.record({ message: fc.record({ content: fc.array(fc.oneof(fc.jsonValue(), BLOCK)) }) }),
    stopReason: fc.jsonValue(),
    usage: fc.jsonValue(),
  });
  assertProperty(
    fc.property(fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), near), (given) => {
      try {
        readAnswer(JSON.parse(JSON.stringify(given)) as JsonObject, { model: "m", toolNames: undefined });
      } catch (error) {
        assert.ok(error instanceof ProxyError);
        assert.equal(error.code, "llm_response_invalid");
      }
    }),
    { numRuns: 300 },
  );
});
