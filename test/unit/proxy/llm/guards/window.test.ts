/** Streams under response guards: no border between chunks, events or windows hides a match, and nothing is lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BuiltinPattern, GuardScope } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../../src/lib/header-list.ts";
import { CalloutError } from "../../../../../src/proxy/callouts/callout.ts";
import type { BodyStream } from "../../../../../src/proxy/exchange/body.ts";
import type { ChatFormat } from "../../../../../src/proxy/llm/formats/chat-format.ts";
import { completions } from "../../../../../src/proxy/llm/formats/completions/index.ts";
import { messages } from "../../../../../src/proxy/llm/formats/messages/index.ts";
import { responses } from "../../../../../src/proxy/llm/formats/responses/index.ts";
import { RequestGuards } from "../../../../../src/proxy/llm/guards/run.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";
import { compileGuards, slowService, type CompiledGuard } from "../../../../support/gateway/compiled-guards.ts";
import { readBody, streamFrom, TestExchange } from "../../../../support/gateway/llm-harness.ts";

const SECRET = "123-45-6789";
const BLOCKED = `data: ${JSON.stringify({ error: { type: "guardrail_blocked", code: "guardrail_intervention", message: "no" } })}\n\n`;
const LIMIT = 65_536;

interface Setup extends CompiledGuard {
  readonly format?: ChatFormat;
  readonly limit?: number;
}

function guard(
  source: BodyStream,
  { format: { client } = completions, limit = LIMIT, ...response }: Setup = {},
): BodyStream {
  assert.ok(client);
  const exchange = new TestExchange(Buffer.alloc(0));
  return new RequestGuards(compileGuards({ response }), client, exchange).checkStream(source, new HeaderList(), limit);
}

function chunk(content: string, index = 0): string {
  return `data: ${JSON.stringify({ model: "m", choices: [{ index, delta: { content } }] })}\n\n`;
}

/** Splits a text at the given places. */
function split(text: string, ...places: readonly number[]): string[] {
  const ends = [...places, text.length];
  return ends.map((end, index) => text.slice(index === 0 ? 0 : ends[index - 1], end));
}

async function checked(pieces: readonly string[], setup?: Setup): Promise<string> {
  const { text, error } = await readBody(guard(streamFrom(pieces.map((piece) => Buffer.from(piece))), setup));
  assert.equal(error, undefined);
  return text;
}

test("a match is found at every offset of a window, however events and chunks divide it", async () => {
  const filler = "word ".repeat(260);
  for (let offset = 0; offset <= 1_300; offset++) {
    const text = `${filler.slice(0, offset)} ${SECRET} and more`;
    const cut = offset % (SECRET.length + 1);
    const [first = "", second = ""] = split(text, offset + 1 + cut).map((part) => chunk(part));
    // A window closes at the end of a chunk: after the first event, in the middle of the second one, and at the end.
    const inside = offset % second.length;
    const answer = await checked([first, second.slice(0, inside), second.slice(inside), "data: [DONE]\n\n"]);
    assert.ok(answer.endsWith(BLOCKED), `at ${offset}, cut at ${cut}`);
    assert.ok(!answer.includes("and more") && !answer.includes("[DONE]"), `at ${offset}, cut at ${cut}`);
  }
});

/** New text of this length closes a window. */
const WINDOW = 1_024;
/** A spelling of each built-in entity; no part of one is a match by itself. */
const SPELLINGS: readonly (readonly [name: string, BuiltinPattern, spelling: string])[] = [
  ["Ssn", BuiltinPattern.SSN, SECRET],
  ["CaSin", BuiltinPattern.CA_SIN, "046 454 286"],
  ["CreditCard", BuiltinPattern.CREDIT_CARD, "4111-1111-1111-1111"],
  ["PhoneNumber", BuiltinPattern.PHONE_NUMBER, "+1 (416) 967-1111"],
  ["Email", BuiltinPattern.EMAIL, "bob@xn--bcher-kva.example"],
];

for (const [name, builtin, spelling] of SPELLINGS) {
  test(`a border of windows anywhere in a match does not hide it: ${name}`, async () => {
    for (let cut = 0; cut <= spelling.length; cut++) {
      const before = `${"x".repeat(WINDOW - cut - 1)} ${spelling.slice(0, cut)}`;
      assert.equal(before.length, WINDOW, "the first event closes the window");
      const answer = await checked([chunk(before), chunk(`${spelling.slice(cut)} and so on`)], { builtin });
      assert.ok(answer.endsWith(BLOCKED) && !answer.includes("and so on"), `cut at ${cut}`);
      // What the first window let through is at most the part of the match that it held.
      assert.ok(cut === spelling.length || answer === chunk(before) + BLOCKED || answer === BLOCKED, `cut at ${cut}`);
    }
  });

  test(`a match that comes one character in each of many windows is found: ${name}`, async () => {
    // Another choice fills a window between any two characters.
    const pieces = [...`${spelling} `].flatMap((character) => [chunk(character), chunk("y".repeat(WINDOW), 1)]);
    const answer = await checked([chunk("see "), ...pieces], { builtin });
    assert.ok(answer.endsWith(BLOCKED), answer.slice(-200));
  });
}

test("a match that comes in single characters is found at each place around the border of a window", async () => {
  const start = WINDOW - 2 * SECRET.length;
  for (let lead = WINDOW - SECRET.length - 3; lead <= WINDOW + 3; lead++) {
    const text = `${"x".repeat(lead)} ${SECRET} and more`;
    const [before = "", rest = ""] = split(text, start);
    const answer = await checked([before, ...rest].map((part) => chunk(part)));
    assert.ok(answer.endsWith(BLOCKED), `at ${lead}`);
  }
});

test("a stream without a match passes byte for byte, whatever the chunks", async () => {
  const events = `: hello\n\nevent: x\r\nid: 1\r\n${chunk("a".repeat(900))}${chunk("zwölf ☂ ".repeat(90))}data: {"usage":1}\n\n`;
  const whole = Buffer.from(`${events.repeat(4)}data: [DONE]\n\n`);
  await assertProperty(
    fc.asyncProperty(fc.array(fc.nat(whole.length), { maxLength: 12 }), async (places) => {
      const ends = [...places, whole.length].sort((a, b) => a - b);
      const chunks = ends.map((end, index) => whole.subarray(index === 0 ? 0 : ends[index - 1], end));
      const { text, error } = await readBody(guard(streamFrom(chunks)));
      assert.deepEqual([text, error], [whole.toString(), undefined]);
    }),
    { numRuns: 60 },
  );
});

test("nothing of an event leaves before the window that holds its text has passed", async () => {
  const events = `${chunk("b".repeat(1_500))}${chunk("harmless")}`;
  const secret = chunk(`it is ${SECRET}`);
  for (let cut = 0; cut < secret.length; cut++) {
    const answer = await checked([events + secret.slice(0, cut), secret.slice(cut)]);
    assert.ok(answer.startsWith(chunk("b".repeat(1_500))) && answer.endsWith(BLOCKED), `cut at ${cut}`);
    assert.ok(!answer.includes("it is"), `cut at ${cut}`);
  }
});

test("choices are apart, so that texts of two never make a match and each of them does", async () => {
  const apart = [chunk("123-45-", 0), chunk("6789", 1)];
  assert.equal(await checked(apart), apart.join(""));
  const woven = [chunk("123-", 0), chunk("x ", 1), chunk("45-", 0), chunk("y", 1), chunk("6789", 0)];
  assert.equal(await checked(woven), BLOCKED);
  assert.equal(await checked([chunk("fine", 0), chunk(`see ${SECRET}`, 1)]), BLOCKED);
});

test("arguments of a call are checked where they are in scope, with their escapes resolved", async () => {
  const call = (text: string): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } }] })}\n\n`;
  const events = [call('{"a":"123\\u00'), call("2d45-67"), call('89"}')];
  assert.equal(await checked(events, { scope: [GuardScope.TOOL_INPUT] }), BLOCKED);
  assert.equal(await checked(events), events.join(""));
});

test("the events of other formats are read as well", async () => {
  const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
  const block = (text: string, index = 0): string =>
    event({ type: "content_block_delta", index, delta: { type: "text_delta", text } });
  assert.equal(await checked([block("123-45"), block("-6789")], { format: messages }), BLOCKED);
  const delta = (text: string): string =>
    event({ type: "response.output_text.delta", item_id: "i", output_index: 0, content_index: 0, delta: text });
  const done = (text: string): string => event({ type: "response.output_text.done", item_id: "i", text });
  assert.equal(await checked([delta("123-45"), delta("-6789")], { format: responses }), BLOCKED);
  assert.equal(await checked([done(SECRET)], { format: responses }), BLOCKED);
  const started = event({ type: "message_start", message: { content: [{ type: "text", text: "123-45" }] } });
  assert.equal(await checked([started, block("-6789")], { format: messages }), BLOCKED);
  const part = (delta: object): string => event({ choices: [{ index: 0, delta }] });
  const thinking = (text: string): object => ({ content: [{ type: "thinking", thinking: [{ type: "text", text }] }] });
  assert.equal(await checked([part({ content: [{ type: "text", text: "123-45" }] }), chunk("-6789")]), BLOCKED);
  assert.equal(await checked([part(thinking("123-45")), part(thinking("-6789"))]), BLOCKED);
  assert.equal(await checked([part({ thinking_blocks: [{ type: "thinking", thinking: SECRET }] })]), BLOCKED);
  const repeated = [delta("harmless"), done("harmless")];
  assert.equal(await checked(repeated, { format: responses }), repeated.join(""));
});

test("a text is not taken for one that passed because a short hash of both is the same", async () => {
  const event = (type: string, text: string): string =>
    `data: ${JSON.stringify({ type: `response.output_text.${type}`, item_id: "i", delta: text, text })}\n\n`;
  // Of the same length, with the same FNV-1a.
  const harmless = "ok gwmwannb";
  for (const rest of ["", ` ${"x".repeat(WINDOW)}`]) {
    const deltas = event("delta", harmless + rest);
    const repeated = deltas + event("done", harmless + rest);
    assert.equal(await checked([deltas, event("done", harmless + rest)], { format: responses }), repeated);
    const answer = await checked([deltas, event("done", SECRET + rest)], { format: responses });
    assert.ok(answer.endsWith(BLOCKED) && !answer.includes(SECRET), answer.slice(-200));
  }
});

test("an event that is not a JSON object cannot be checked, and breaks the stream off", async () => {
  // Python reads NaN, and the first two of these as text.
  for (const data of [
    `{"choices":[{"delta":{"content":"${SECRET}"}}],"x":NaN}`,
    `"${SECRET}"`,
    `["${SECRET}"]`,
    SECRET,
  ])
    for (const pieces of [[chunk("hi"), `data: ${data}\n\n`, chunk("more")], [`data: ${data}`]]) {
      const { text, error } = await readBody(guard(streamFrom(pieces.map((piece) => Buffer.from(piece)))));
      assert.match(String(error), /upstream|response|LLM/i, data);
      assert.ok(!text.includes(SECRET) && text.includes('"error"'), text);
    }
  const harmless = [chunk("hi"), "data:\n\n", "event: ping\n\n", "data: [DONE] \n\n"];
  assert.equal(await checked(harmless), harmless.join(""));
});

test("a full buffer without text is released, and an event beyond the limit breaks the stream off", async () => {
  const silent = `data: ${JSON.stringify({ pad: "x".repeat(300) })}\n\n`;
  assert.equal(
    await checked(
      Array.from({ length: 9 }, () => silent),
      { limit: 1_000 },
    ),
    silent.repeat(9),
  );
  const { error } = await readBody(guard(streamFrom([Buffer.from(`data: ${"x".repeat(2_000)}`)]), { limit: 1_000 }));
  assert.match(String(error), /upstream|response|LLM/i);
});

test("a source that breaks off passes nothing that was not checked, and the client learns of it", async () => {
  const source = streamFrom([Buffer.from(chunk("unchecked"))], new Error("broken"));
  const { text, error } = await readBody(guard(source));
  const told = { error: { message: "upstream call failed", type: "api_error", param: null, code: null } };
  assert.deepEqual([text, error?.message], [`data: ${JSON.stringify(told)}\n\n`, "broken"]);
});

test("a slow service holds the stream back, and what came meanwhile is checked before it leaves", async () => {
  const { callout, asked, finish } = slowService();
  let seen = "";
  let isOver = false;
  const stream = guard(
    {
      read(sink) {
        // A source that does not wait.
        for (const text of ["c".repeat(1_100), "meanwhile"]) sink.data(Buffer.from(chunk(text)));
        sink.end([]);
      },
      resume: () => undefined,
      destroy: () => undefined,
    },
    { callout },
  );
  stream.read({
    data: (bytes) => ((seen += bytes.toString()), true),
    end: () => void (isOver = true),
    error: (error) => assert.fail(error),
  });
  assert.equal(seen, "");
  await finish({ action: {} });
  assert.equal(seen, chunk("c".repeat(1_100)));
  const window = `${"c".repeat(256)}meanwhile`;
  assert.deepEqual(asked[1], { body: { choices: [{ message: { role: "assistant", content: window } }] } });
  await finish({ action: { body: "stop", status_code: 403 } });
  assert.ok(isOver && seen.endsWith(BLOCKED.replace('"no"', '"stop"')) && !seen.includes("meanwhile"));
});

test("a service that fails blocks the stream with a fixed text", async () => {
  const { callout, finish } = slowService();
  const reading = checked([chunk("text")], { callout });
  await finish(new CalloutError("down"));
  assert.equal(await reading, BLOCKED.replace('"no"', '"Content blocked by guardrail policy"'));
});
