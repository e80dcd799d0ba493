/** Answer streams: what the client sees, what is charged, and what happens when one side stops early. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import fc from "fast-check";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import type { AnswerEvent } from "../../../../src/proxy/llm/conversation/events.ts";
import type { ChatFormat } from "../../../../src/proxy/llm/formats/chat-format.ts";
import { completions } from "../../../../src/proxy/llm/formats/completions/index.ts";
import { printStream } from "../../../../src/proxy/llm/formats/completions/print-stream.ts";
import { messages } from "../../../../src/proxy/llm/formats/messages/index.ts";
import { readStream as readConverse } from "../../../../src/proxy/llm/formats/converse/read-stream.ts";
import { readStream } from "../../../../src/proxy/llm/formats/messages/read-stream.ts";
import { printStream as printResponsesStream } from "../../../../src/proxy/llm/formats/responses/print-stream.ts";
import type { JsonObject } from "../../../../src/proxy/llm/shared/json.ts";
import { scanStream } from "../../../../src/proxy/llm/stream/scanned-stream.ts";
import { translateStream } from "../../../../src/proxy/llm/stream/translated-stream.ts";
import { framingOf } from "../../../../src/proxy/llm/stream/framing.ts";
import { mayCarryUsage } from "../../../../src/proxy/llm/stream/usage-hint.ts";
import { readBody, streamFrom, TestExchange } from "../../../support/gateway/llm-harness.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";
import { streamOf } from "../../../support/servers/llm/bedrock-stream.ts";
import { openLedger } from "../../../../src/proxy/llm/call/ledger.ts";

/** A fresh translation of a messages stream for a chat completions client. */
function sides() {
  const reader = readStream({ toolNames: undefined, model: "m" });
  return { reader, printer: printStream({ request: {}, createdAt: 1 }) };
}

async function books(format: ChatFormat) {
  const exchange = new TestExchange(Buffer.alloc(0));
  const charged: number[] = [];
  exchange.tokenGates.push({ admit: () => undefined, settle: (total) => void charged.push(total) });
  const ledger = await openLedger(exchange, { requestModel: "m", provider: "p", streaming: true }, () => 40);
  return { exchange, charged, context: { format, ledger, maxEventBytes: 4096, hidesUsage: false } };
}

const CHUNKS =
  'data: {"model":"m-1","choices":[{"delta":{"content":"usage: héllo"}}],"usage":null}\r\n\r\n: ping\n\n' +
  'data: {"model":"m-1","choices":[],"us\\u0061ge":{"prompt_tokens":4,"completion_tokens":6,"total_tokens":10}}\n\n' +
  "data: [DONE]\n\n";
const START =
  'event: message_start\ndata: {"type":"message_start","message":{"id":"i","model":"m","usage":{"input_tokens":8,"output_tokens":1}}}\n\n';
const TEXT = 'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}\n\n';
const FINISH = 'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}\n\n';
const STOP = 'data: {"type":"message_stop"}\n\n';

function cut(text: string, places: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const ends = [...places.map((place) => place % bytes.length), bytes.length].sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}

test("a passed stream keeps every byte and is charged, whatever the chunking", async () => {
  await assertProperty(
    fc.asyncProperty(fc.array(fc.nat(1000), { maxLength: 20 }), async (places) => {
      const { charged, context, exchange } = await books(completions);
      const { text } = await readBody(scanStream(streamFrom(cut(CHUNKS, places)), context));
      assert.equal(text, CHUNKS);
      assert.deepEqual(charged, [10]);
      assert.equal(exchange.llm["responseModel"], "m-1");
    }),
  );
});

test("only events that can carry usage are parsed, and an escaped key does not hide it", () => {
  assert.equal(mayCarryUsage('{"choices":[],"usage":null}'), false);
  assert.equal(mayCarryUsage('{"choices":[{"delta":{"content":"hello"}}]}'), false);
  assert.equal(mayCarryUsage('{"usage":null,"x":{"usage":{}}}'), true);
  assert.equal(mayCarryUsage('{"us\\u0061ge":{}}'), true);
});

test("a passed stream whose events are too long is still the client's, and the others are counted", async () => {
  const long = `data: ${"x".repeat(9000)}\n\n`;
  // What cannot be read is charged by the request alone.
  for (const [stream, tokens] of [
    [long, 10],
    [long + CHUNKS.replaceAll(/[46],/g, "9$&"), 94 + 96],
  ] as const) {
    const { charged, context } = await books(completions);
    const { text, error } = await readBody(scanStream(streamFrom([Buffer.from(stream)]), context));
    assert.deepEqual([text, error, charged], [stream, undefined, [tokens]]);
  }
});

test("a passed stream of messages that ends before its counts do is charged for its text", async () => {
  for (const [stream, tokens] of [
    [START + TEXT.replace('"a"', `"${"word ".repeat(8)}"`), 8 + 10],
    [START + TEXT.replace('"a"', `"${"word ".repeat(8)}"`) + FINISH + STOP, 8 + 3],
  ] as const) {
    const { charged, context } = await books(messages);
    const { text, error } = await readBody(scanStream(streamFrom([Buffer.from(stream)]), context));
    assert.deepEqual([text, error, charged], [stream, undefined, [tokens]]);
  }
});

test("a translated event stream of Bedrock is the same whatever the chunking, and a damaged one breaks off", async () => {
  const content = [
    { text: "some words, and some more" },
    { toolUse: { toolUseId: "t", name: "get", input: { city: "Rome" } } },
  ];
  const framing = framingOf("application/vnd.amazon.eventstream");
  assert.ok(framing);
  const translated = async (chunks: Buffer[]): Promise<{ text: string; error: Error | undefined }> => {
    const { charged, context } = await books(messages);
    const reader = readConverse({ toolNames: undefined, model: "m" });
    const printer = printStream({ request: {}, createdAt: 1 });
    const read = await readBody(translateStream(streamFrom(chunks), { ...context, framing }, { reader, printer }));
    assert.deepEqual(charged, [read.error === undefined ? 18 : 20]);
    return { ...read, text: read.text.replaceAll(/msg_[0-9a-f]+/g, "msg") };
  };
  const whole = Buffer.concat(streamOf({ content, stopReason: "tool_use" }));
  const { text, error } = await translated([whole]);
  assert.equal(error, undefined);
  assert.match(text, /"finish_reason":"tool_calls"[^]*data: \[DONE\]\n\n$/);
  assert.deepEqual(await translated(Array.from(whole, (byte) => Buffer.of(byte))), { text, error });
  const damaged = Buffer.concat(streamOf({ content, isDamaged: true }));
  const broken = await translated([damaged]);
  assert.ok(broken.error instanceof ProxyError);
  assert.equal(broken.error.code, "llm_response_invalid");
});

test("what closes a stream of chat completions may have spaces behind it", async () => {
  const chunk = { id: "c", model: "m", choices: [{ index: 0, delta: { content: "hi" }, finish_reason: "stop" }] };
  for (const done of ["[DONE]", "[DONE] ", "[DONE]\t"]) {
    const { context } = await books(completions);
    const reader = completions.provider?.readStream({ toolNames: undefined, model: "m" });
    const printer = messages.client?.printStream({ request: {}, createdAt: 1 });
    assert.ok(reader !== undefined && printer !== undefined);
    const source = streamFrom([Buffer.from(`data: ${JSON.stringify(chunk)}\n\ndata: ${done}\n\n`)]);
    const { text, error } = await readBody(translateStream(source, context, { reader, printer }));
    assert.equal(error, undefined, done);
    assert.match(text, /"type":"message_stop"/, done);
  }
});

test("a translated stream is the same whatever the chunking", async () => {
  const whole = START + TEXT + FINISH + STOP;
  const translated = async (chunks: Buffer[]): Promise<string> => {
    const { charged, context } = await books(messages);
    const { text, error } = await readBody(translateStream(streamFrom(chunks), context, sides()));
    assert.equal(error, undefined);
    assert.deepEqual(charged, [11]);
    return text;
  };
  const expected = await translated([Buffer.from(whole)]);
  assert.ok(expected.endsWith("data: [DONE]\n\n"));
  await assertProperty(
    fc.asyncProperty(fc.array(fc.nat(1000), { maxLength: 20 }), async (places) =>
      assert.equal(await translated(cut(whole, places)), expected),
    ),
  );
});

/** Texts that look like the rest of an event are among them. */
const someText = fc.oneof(
  fc.constantFrom(
    "",
    "a",
    "text",
    "text_delta",
    "content",
    "i",
    "}}",
    '"',
    "\\",
    'a","index":7,"x":"b',
    "ü",
    "\n",
    "\u2028",
  ),
  fc.string(),
);
const someEvent = fc.oneof(
  { weight: 8, arbitrary: someText.map((text) => textEvent({ type: "text_delta", text })) },
  someText.map((thinking) => textEvent({ type: "thinking_delta", thinking })),
  someText.map((text) => ({ ...textEvent({ type: "text_delta", text }), more: text })),
  someText.map((partial_json) => textEvent({ type: "input_json_delta", partial_json })),
  someText.map((name) => ({
    type: "content_block_start",
    index: 1,
    content_block: { type: "tool_use", id: "t", name },
  })),
  someText.map((id) => ({ type: "message_start", message: { id, model: "m", usage: { input_tokens: 1 } } })),
  fc.constant({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 3 } }),
);

function textEvent(delta: object): object {
  return { type: "content_block_delta", index: 0, delta };
}

for (const [name, print] of [
  ["Completions", printStream],
  ["Responses, whose events are numbered", printResponsesStream],
] as const)
  test(`events that repeat the one before but for its text are answered as if each had been converted: ${name}`, async () => {
    await assertProperty(
      fc.asyncProperty(fc.array(fc.tuple(someEvent, fc.boolean()), { maxLength: 30 }), async (given) => {
        const both = () => ({
          reader: readStream({ toolNames: undefined, model: "m" }),
          printer: print({ request: {}, createdAt: 1 }),
        });
        const { reader, printer } = both();
        const finish = JSON.parse(FINISH.slice("data: ".length)) as object; // our own text
        const all = [...given, [finish, false] as const];
        // The same object may be written with spaces or without.
        const printed = all.map(([event, wide]) => JSON.stringify(event, undefined, wide ? 1 : 0).replaceAll("\n", ""));
        const read = printed.flatMap((event) => reader.read(JSON.parse(event) as JsonObject, ""));
        const expected = [...read, ...reader.end()].map((event) => printer.print(event)).join("") + printer.end();
        const { context } = await books(messages);
        const source = streamFrom(printed.map((event) => Buffer.from(`data: ${event}\n\n`)));
        const { text } = await readBody(translateStream(source, context, both()));
        assert.equal(withoutIdentifiers(text), withoutIdentifiers(expected));
      }),
      { numRuns: 1000 },
    );
  });

/** Each stream of Responses draws identifiers of its own. */
function withoutIdentifiers(text: string): string {
  return text.replaceAll(/_[0-9a-f]{16,}/g, "_id");
}

test("a stream that stops before its answer is complete is a broken body, and what was used is charged", async () => {
  for (const broken of [undefined, new Error("reset")]) {
    const { charged, context } = await books(messages);
    const source = streamFrom([Buffer.from(START + TEXT)], broken);
    const { text, error } = await readBody(translateStream(source, context, sides()));
    assert.ok(error instanceof Error);
    assert.equal(text.includes("[DONE]"), false);
    assert.deepEqual(charged, [9]);
  }
});

test("an event that is no JSON breaks a translated stream", async () => {
  const { context } = await books(messages);
  const source = streamFrom([Buffer.from(`${START}data: nonsense\n\n`)]);
  const { error } = await readBody(translateStream(source, context, sides()));
  assert.ok(error instanceof ProxyError && error.code === "llm_response_invalid");
});

test("a client that goes away is charged for what was used, and the upstream is stopped", async () => {
  for (const translate of [true, false]) {
    const { charged, context } = await books(messages);
    const source = streamFrom([Buffer.from(START), Buffer.from(TEXT), Buffer.from(FINISH)]);
    let stopped = false;
    const watched = { ...source, destroy: () => ((stopped = true), source.destroy()) };
    const body = translate ? translateStream(watched, context, sides()) : scanStream(watched, context);
    let chunks = 0;
    body.read({
      data: () => (chunks++, false),
      end: () => assert.fail("a stopped stream says nothing more"),
      error: () => assert.fail("a stopped stream says nothing more"),
    });
    assert.equal(chunks, 1, "a paused reader gets nothing more");
    body.destroy();
    body.resume();
    assert.equal(chunks, 1);
    assert.equal(stopped, true);
    assert.deepEqual(charged, [9]);
  }
});

/** A piece of a chat completion, as one event. */
const piece = (content: string): string =>
  `data: ${JSON.stringify({ model: "m", choices: [{ index: 0, delta: { content } }] })}\n\n`;

test("a stream without usage is charged by an estimate: its text and that of the request, four bytes a token", async () => {
  const pieces = ["abcd", "efgh", "é", 'a "quoted" piece', "i"];
  const text = Buffer.byteLength(pieces.join(""));
  for (const isCut of [false, true]) {
    const { charged, context, exchange } = await books(completions);
    const broken = isCut ? new Error("reset") : undefined;
    await readBody(scanStream(streamFrom([Buffer.from(pieces.map(piece).join(""))], broken), context));
    assert.deepEqual(charged, [40 / 4 + Math.ceil(text / 4)]);
    assert.equal(exchange.llm["usageEstimated"], true);
  }
  const { charged, context } = await books(messages);
  const source = streamFrom(
    [Buffer.from(START + TEXT + TEXT.replace('"a"', JSON.stringify("b".repeat(40))))],
    new Error("reset"),
  );
  await readBody(translateStream(source, context, sides()));
  assert.deepEqual(charged, [8 + Math.ceil(41 / 4)], "the input is known, the output is more than was reported");
});

const FIRST_ERRORS: readonly string[] = [
  'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
  'data: {"error":{"message":"slow down","type":"rate_limit_error"}}\n\ndata: [DONE]\n\n',
];

for (const [at, failure] of FIRST_ERRORS.entries())
  test(`a stream in the client's format that begins with an error fails wherever it is cut (${at})`, async () => {
    for (let place = 0; place < failure.length; place++) {
      const { charged, context } = await books(messages);
      const pieces = [failure.slice(0, place), failure.slice(place)].map((piece) => Buffer.from(piece));
      const { text, error } = await readBody(scanStream(streamFrom(pieces), context));
      assert.ok(error instanceof ProxyError && error.status === 502, `cut at ${place}`);
      assert.deepEqual([text, charged], ["", [0]]);
    }
  });

test("what precedes the first event goes out at once, and an error in the middle passes", async () => {
  const { context } = await books(messages);
  const comment = ": processing\n\n";
  const stream = comment + START + (FIRST_ERRORS[0] ?? "");
  const seen: string[] = [];
  const body = scanStream(
    streamFrom([comment, stream.slice(comment.length)].map((piece) => Buffer.from(piece))),
    context,
  );
  body.read({ data: (chunk) => seen.push(chunk.toString()) > 0, end: () => undefined, error: assert.fail });
  assert.equal(seen[0], comment);
  assert.equal(seen.join(""), stream);
});

test("a translated stream that breaks off tells the client in its own format, and does not end cleanly", async () => {
  const { context } = await books(messages);
  const source = streamFrom([Buffer.from(START + TEXT), Buffer.from("data: nonsense\n\n")]);
  const { text, error } = await readBody(translateStream(source, context, sides()));
  assert.ok(error instanceof ProxyError && error.code === "llm_response_invalid");
  const last = text.trimEnd().split("\n\n").at(-1) ?? "";
  const printed = JSON.parse(last.slice("data: ".length)) as { error: { type: string } };
  assert.equal(printed.error.type, "api_error");
  assert.equal(text.includes("[DONE]"), false);
});

test("a stream that begins with an error fails before anything goes out, and costs nothing", async () => {
  const failure = 'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n';
  for (const before of ["", START]) {
    const { charged, context } = await books(messages);
    const { text, error } = await readBody(
      translateStream(streamFrom([Buffer.from(before + failure)]), context, sides()),
    );
    assert.ok(error instanceof ProxyError && error.status === 502);
    assert.equal(text, "");
    assert.deepEqual(charged, [before === "" ? 0 : 9]);
  }
});

test("signed thoughts between texts and calls are one list in one chunk of chat completions", async () => {
  const printer = printStream({ request: {}, createdAt: 1 });
  const place = (part: number) => ({ choice: 0, part });
  const signature = { vendor: "anthropic", value: "s" } as const;
  const thought = (part: number, text: string) =>
    [
      { kind: "open", ...place(part), opened: { kind: "reasoning" } },
      { kind: "delta", ...place(part), text },
      { kind: "signature", ...place(part), signature },
      { kind: "close", ...place(part) },
    ] as const;
  const printed: readonly AnswerEvent[] = [
    { kind: "start", id: "1", model: "m" },
    ...thought(0, "Hmm."),
    { kind: "open", ...place(1), opened: { kind: "redacted", data: signature } },
    { kind: "close", ...place(1) },
    { kind: "open", ...place(2), opened: { kind: "text" } },
    { kind: "delta", ...place(2), text: "Yes." },
    { kind: "close", ...place(2) },
    ...thought(3, "And then?"),
    { kind: "open", ...place(4), opened: { kind: "call", id: "c", name: "look" } },
    { kind: "delta", ...place(4), text: "{}" },
    { kind: "close", ...place(4) },
    { kind: "stop", choice: 0, stop: { reason: "calls" } },
  ];
  const text = printed.map((event) => printer.print(event)).join("");
  const expected = [
    { type: "thinking", thinking: "Hmm.", signature: "gw1:anthropic:s" },
    { type: "redacted_thinking", data: "gw1:anthropic:s" },
    { type: "thinking", thinking: "And then?", signature: "gw1:anthropic:s" },
  ];
  assert.equal(text.match(/"thinking_blocks"/g)?.length, 1);
  // The helper of the official client keeps the last piece of a member that it does not know.
  const lines = text.replaceAll(/^data: /gm, "").replaceAll("\n\n", "\n");
  const helper = ChatCompletionStream.fromReadableStream(new Blob([lines]).stream());
  const [choice] = (await helper.finalChatCompletion()).choices;
  const kept = choice?.message as { readonly thinking_blocks?: unknown } | undefined; // of no published type
  assert.deepEqual(kept?.thinking_blocks, expected);
});
