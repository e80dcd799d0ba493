/** Answers of a session under response guards: no event and no border hides a match, and answers do not meet. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GuardScope } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../../src/lib/header-list.ts";
import { SessionAnswers } from "../../../../../src/proxy/llm/guards/session-answers.ts";
import type { JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";
import { compileGuards } from "../../../../support/gateway/compiled-guards.ts";
import { TestExchange } from "../../../../support/gateway/llm-harness.ts";

const SECRET = "123-45-6789";
const WINDOW = 1_024;
const EVERY_SCOPE = [GuardScope.MESSAGES, GuardScope.TOOL_INPUT, GuardScope.TOOL_OUTPUT];

/** What came of some events: those that went on, and what was said about rejections. */
interface Outcome {
  readonly events: JsonObject[];
  readonly rejections: string[];
  readonly cancelled: string[];
}

/** @param errorEndsAnswer as in sessions of Responses */
function openAnswers(limitBytes = 65_536, errorEndsAnswer = false): SessionAnswers {
  const { response } = compileGuards({ response: { scope: EVERY_SCOPE } });
  assert.ok(response);
  const guards = { chain: response, exchange: new TestExchange(Buffer.alloc(0)), headers: new HeaderList() };
  return new SessionAnswers(guards, { limitBytes, errorEndsAnswer });
}

async function takeAll(events: readonly JsonObject[], answers: SessionAnswers = openAnswers()): Promise<Outcome> {
  const outcome: Outcome = { events: [], rejections: [], cancelled: [] };
  const steps = [...events.map((event) => () => answers.take(event)), () => answers.release()];
  for (const step of steps) {
    const { events: released, rejection, cancelled = [] } = await step();
    outcome.events.push(...released.map((text) => JSON.parse(text) as JsonObject));
    if (rejection !== undefined) outcome.rejections.push(rejection);
    outcome.cancelled.push(...cancelled);
  }
  return outcome;
}

const IDS = { response_id: "r1", item_id: "i1", output_index: 0, content_index: 0 };

function created(id: string, members: JsonObject = {}): JsonObject {
  return { type: "response.created", response: { id, output: [] }, ...members };
}

function delta(text: string, members: JsonObject = {}): JsonObject {
  return { type: "response.output_text.delta", ...IDS, ...members, delta: text };
}

function done(id: string, text: string, members: JsonObject = {}): JsonObject {
  const item = { type: "message", role: "assistant", content: [{ type: "output_text", text }] };
  return { type: "response.done", response: { id, output: [item] }, ...members };
}

/** Events that carry text in pieces, with the member that does. */
const PIECES: readonly (readonly [type: string, piece: (text: string) => JsonObject])[] = [
  ...[
    "response.output_text",
    "response.refusal",
    "response.reasoning_summary_text",
    "response.reasoning_text",
    "response.output_audio_transcript",
    "response.audio.transcript",
    "response.text",
    "response.audio_transcript",
    "conversation.item.input_audio_transcription",
    "session.input_transcript",
    "session.output_transcript",
    "response.function_call_arguments",
    "response.mcp_call_arguments",
    "response.custom_tool_call_input",
    "response.code_interpreter_call_code",
    "response.shell_call_command",
  ].map((name) => [`${name}.delta`, (text: string) => ({ delta: text })] as const),
  ["conversation.item.input_audio_transcription.segment", (text) => ({ text })],
  ["response.shell_call_output_content.delta", (text) => ({ delta: { stderr: text } })],
];

for (const [type, piece] of PIECES)
  test(`a match in pieces is found wherever it is cut: ${type}`, async () => {
    for (let cut = 0; cut <= SECRET.length; cut++) {
      const before = `${"x".repeat(WINDOW - cut - 1)} ${SECRET.slice(0, cut)}`;
      const events = [before, `${SECRET.slice(cut)} and more`].map((text) => ({ type, ...IDS, ...piece(text) }));
      const { events: passed, rejections } = await takeAll([...events, { type: "input_audio_buffer.cleared" }]);
      assert.deepEqual(rejections, ["no"], `cut at ${cut}`);
      // A translation never ends, and goes on behind the window that was withheld.
      const mayGoOn = type.startsWith("session.") && cut === SECRET.length;
      assert.equal(JSON.stringify(passed).includes("and more"), mayGoOn, `cut at ${cut}`);
      assert.ok(!JSON.stringify(passed).includes(SECRET), `cut at ${cut}`);
      assert.equal(passed.at(-1)?.["type"], "input_audio_buffer.cleared", "other events go on");
    }
  });

test("a match is found at every offset of a window", async () => {
  const filler = "word ".repeat(260);
  for (let offset = 0; offset <= 1_300; offset += offset > WINDOW - 40 && offset < WINDOW + 5 ? 1 : 17) {
    const text = `${filler.slice(0, offset)} ${SECRET} and more`;
    const cut = offset + 1 + (offset % SECRET.length);
    const { events, rejections, cancelled } = await takeAll([delta(text.slice(0, cut)), delta(text.slice(cut))]);
    assert.deepEqual([rejections, cancelled], [["no"], ["r1"]], `at ${offset}`);
    assert.ok(!JSON.stringify(events).includes("and more"), `at ${offset}`);
  }
});

/** Events that carry a text at once. */
const WHOLE: Readonly<Record<string, JsonObject>> = {
  "response.output_text.done": { text: SECRET },
  "response.refusal.done": { refusal: SECRET },
  "response.reasoning_summary_text.done": { text: SECRET },
  "response.reasoning_text.done": { text: SECRET },
  "response.output_audio_transcript.done": { transcript: SECRET },
  "response.text.done": { text: SECRET },
  "response.audio_transcript.done": { transcript: SECRET },
  "response.function_call_arguments.done": { arguments: `{"a":"${SECRET}"}` },
  "response.mcp_call_arguments.done": { arguments: `{"a":"${SECRET}"}` },
  "response.custom_tool_call_input.done": { input: SECRET },
  "response.code_interpreter_call_code.done": { code: SECRET },
  "response.shell_call_command.added": { command: SECRET },
  "response.shell_call_command.done": { command: SECRET },
  "response.shell_call_output_content.done": { output: [{ stdout: SECRET, stderr: "" }] },
  "response.content_part.added": { part: { type: "output_text", text: SECRET } },
  "response.content_part.done": { part: { type: "audio", transcript: SECRET } },
  "response.output_item.done": { item: { type: "mcp_call", id: "i1", arguments: "{}", output: SECRET } },
  "conversation.item.done": {
    item: { type: "message", role: "assistant", content: [{ type: "output_audio", transcript: SECRET }] },
  },
  "conversation.item.retrieved": {
    item: { type: "message", role: "user", content: [{ type: "input_audio", transcript: SECRET }] },
  },
  "conversation.item.added": { item: { type: "mcp_call", id: "i1", arguments: "{}", output: SECRET } },
  "conversation.item.created": { item: { type: "function_call", id: "i1", arguments: `{"a":"${SECRET}"}` } },
  "an event of the future": { item: { role: "assistant", content: SECRET } },
};

for (const [type, members] of Object.entries(WHOLE))
  test(`a match in a text that comes at once is found: ${type}`, async () => {
    const { events, rejections } = await takeAll([{ type, ...IDS, ...members }]);
    assert.deepEqual([events, rejections], [[], ["no"]]);
  });

test("what the client has said comes back unchecked, and what the session understood of speech does not", async () => {
  const events = [
    { type: "message", role: "user", content: [{ type: "input_text", text: SECRET }] },
    { type: "message", role: "system", content: [{ type: "input_text", text: SECRET }] },
    { type: "function_call_output", output: SECRET },
  ].map((item) => ({ type: "conversation.item.added", item }));
  assert.deepEqual(await takeAll(events), { events, rejections: [], cancelled: [] });
});

test("no event that repeats a withheld text gets through", async () => {
  const message = (status: string) => ({
    id: "i1",
    type: "message",
    role: "assistant",
    status,
    content: [{ type: "output_text", text: SECRET }],
  });
  const answer = [
    created("r1"),
    delta("123-45-"),
    delta("6789"),
    { type: "response.output_text.done", ...IDS, text: SECRET },
    { type: "response.content_part.done", ...IDS, part: { type: "output_text", text: SECRET } },
    { type: "response.output_item.done", response_id: "r1", item: message("completed") },
  ];
  const item = { type: "conversation.item.done", item: message("completed") };
  const before = await takeAll([...answer, item, done("r1", SECRET)]);
  assert.deepEqual(before, {
    events: [created("r1"), { ...done("r1", ""), response: { id: "r1", output: [] } }],
    rejections: ["no"],
    cancelled: ["r1"],
  });
  // Behind the end of the answer the item is a text like any other.
  const behind = await takeAll([...answer, done("r1", SECRET), item, { ...item, type: "conversation.item.retrieved" }]);
  assert.deepEqual(behind, { ...before, rejections: ["no", "no", "no"] });
});

test("an event that repeats a text before it was checked is withheld with it, whatever answer it names", async () => {
  const item = { type: "message", id: "i2", role: "assistant", content: [{ type: "output_text", text: SECRET }] };
  for (const repeats of [
    { type: "response.output_text.done", ...IDS, response_id: "r2", text: SECRET },
    { type: "response.content_part.added", ...IDS, response_id: "r2", part: { type: "output_text", text: SECRET } },
    { type: "conversation.item.retrieved", item },
  ]) {
    const { events, rejections } = await takeAll([delta(SECRET), repeats]);
    assert.deepEqual([events, rejections], [[], ["no"]], repeats.type);
  }
});

test("of answers that are under way at once, only the one with the match ends", async () => {
  const other = { response_id: "r2", item_id: "i2" };
  const answers = openAnswers();
  const { events, rejections, cancelled } = await takeAll(
    [
      created("r1"),
      created("r2"),
      delta("fine ", other),
      { type: "response.output_text.done", ...IDS, ...other, text: "fine " },
      delta("123-45-"),
      { type: "session.updated", session: {} },
      { type: "response.output_audio.delta", response_id: "r1", delta: "AAAA" },
      { type: "response.output_audio.delta", response_id: "r2", delta: "BBBB" },
      delta("6789"),
      { type: "response.output_text.done", ...IDS, text: SECRET },
      delta("and more"),
      delta("and more", { ...other, content_index: 1 }),
      done("r1", SECRET),
      done("r2", "fine "),
      // An answer of the same name begins anew.
      created("r1"),
      delta("harmless"),
      done("r1", "harmless"),
    ],
    answers,
  );
  assert.deepEqual([rejections, cancelled], [["no"], ["r1"]]);
  assert.deepEqual(
    events.map(({ type, response_id, response }) => [
      type,
      response_id ?? (response as JsonObject | undefined)?.["id"],
    ]),
    [
      ["response.created", "r1"],
      ["response.created", "r2"],
      ["response.output_text.delta", "r2"],
      ["response.output_text.done", "r2"],
      ["session.updated", undefined],
      ["response.output_audio.delta", "r2"],
      ["response.output_text.delta", "r2"],
      ["response.done", "r1"],
      ["response.done", "r2"],
      ["response.created", "r1"],
      ["response.output_text.delta", "r1"],
      ["response.done", "r1"],
    ],
  );
  assert.deepEqual(events[7]?.["response"], { id: "r1", output: [] }, "the end of the rejected one has no text");
});

test("answers of several streams are apart although their events name none", async () => {
  const text = (stream_id: string, piece: string): JsonObject => ({
    type: "response.audio.transcript.delta",
    stream_id,
    delta: piece,
  });
  const [a, b] = [{ stream_id: "a" }, { stream_id: "b" }];
  const woven = [created("r1", a), created("r2", b), text("a", "123-"), text("b", "x "), text("a", "45-6789")];
  const ends = [done("r2", "x ", b), text("a", "more"), done("r1", "", a), created("r3", a), text("a", "fine")];
  const { events, rejections, cancelled } = await takeAll([...woven, ...ends]);
  assert.deepEqual([rejections, cancelled], [["no"], ["r1"]], "both had text in the window, and one is over");
  assert.deepEqual(
    events.map(({ type, response, delta: piece }) => [type, (response as JsonObject | undefined)?.["id"] ?? piece]),
    [
      ["response.created", "r1"],
      ["response.created", "r2"],
      ["response.done", "r2"],
      ["response.done", "r1"],
      ["response.created", "r3"],
      ["response.audio.transcript.delta", "fine"],
    ],
  );
  const apart = [created("r1", a), created("r2", b), text("a", "123-45-"), text("b", "6789")];
  assert.deepEqual((await takeAll(apart)).events, apart);
});

test("where an error ends an answer, each that is rejected has one in its stream, and no other end", async () => {
  const answers = openAnswers(undefined, true);
  const [a, b] = [{ stream_id: "a" }, { stream_id: "b" }];
  for (const last of [done("r1", SECRET), { type: "response.failed", response: { id: "r1" } }, { type: "error" }]) {
    for (const event of [created("r1", a), created("r2", b), created("r3")])
      assert.deepEqual(await answers.take(event), { events: [JSON.stringify(event)] });
    for (const [at, text] of ["x", SECRET].entries()) await answers.take(delta(text, { ...a, output_index: at }));
    await answers.take({ ...delta("y"), response_id: "r2", ...b });
    const { events, rejection, streams } = await answers.take({ ...delta("y".repeat(WINDOW)), response_id: "r3" });
    assert.deepEqual([events, rejection, streams], [[], "no", ["a", "b", undefined]]);
    for (const rest of [delta("more", a), { ...last, ...a }, done("r2", "y", b), done("r3", "y")])
      assert.deepEqual((await answers.take(rest)).events, [], JSON.stringify(rest));
    const next = [created("r1", a), delta("fine", a), done("r1", "fine", a), { type: "error", ...a }];
    assert.deepEqual((await takeAll(next, answers)).events, next);
  }
  // The end may come in the window that is rejected.
  const atOnce = [delta(SECRET, a), done("r1", SECRET, a)];
  assert.deepEqual(await takeAll(atOnce, answers), { events: [], rejections: ["no"], cancelled: [] });
});

test("an answer that never ended does not end the next one", async () => {
  const next = [created("r2"), { type: "response.output_text.delta", item_id: "i2", delta: "fine" }];
  const { events } = await takeAll([
    created("r1"),
    { ...delta(SECRET), response_id: "" },
    delta("x".repeat(WINDOW)),
    ...next,
  ]);
  assert.deepEqual(events.slice(-2), next);
});

test("a session of any length keeps the lanes of what is under way only", async () => {
  const answers = openAnswers();
  for (let at = 0; at < 1_500; at++) {
    const speech = (type: string, members: JsonObject): JsonObject => ({
      type: `conversation.item.input_audio_transcription.${type}`,
      item_id: `u${at}`,
      content_index: 0,
      ...members,
    });
    const said = [speech("delta", { delta: "hello " }), speech("delta", { delta: "you" })];
    const end = at % 2 === 0 ? speech("completed", { transcript: "hello you" }) : speech("failed", { error: {} });
    const item = { type: "message", id: `a${at}`, role: "assistant", content: [{ type: "output_text", text: "hi" }] };
    const events = [...said, end, { type: "conversation.item.retrieved", item }, delta("hi"), done("r1", "hi")];
    assert.deepEqual((await takeAll(events, answers)).events, events);
  }
});

test("a transcript with a match ends without its text, and the item that was said goes on", async () => {
  const speech = (type: string, members: JsonObject): JsonObject => ({
    type: `conversation.item.input_audio_transcription.${type}`,
    item_id: "u1",
    ...members,
  });
  const item = { type: "conversation.item.done", item: { id: "u1", type: "message", role: "user", content: [] } };
  const full = speech("delta", { delta: `${SECRET} ${"x".repeat(WINDOW)}` });
  const end = speech("completed", { transcript: `${SECRET} and more` });
  const bare = { ...end, transcript: "" };
  const cut = await takeAll([
    full,
    speech("delta", { delta: "and more" }),
    item,
    end,
    speech("delta", { delta: "new" }),
  ]);
  const expected = [item, bare, speech("delta", { delta: "new" })];
  assert.deepEqual(cut, { events: expected, rejections: ["no"], cancelled: [] });
  assert.deepEqual(await takeAll([end]), { events: [bare], rejections: ["no"], cancelled: [] });
});

test("an answer that ends does not hide a match in what goes on beside it", async () => {
  const speech = (text: string): JsonObject => ({
    type: "conversation.item.input_audio_transcription.delta",
    item_id: "u1",
    delta: text,
  });
  const { rejections } = await takeAll([speech("123-45-"), delta("hi"), done("r1", "hi"), speech("6789 ")]);
  assert.deepEqual(rejections, ["no"]);
});

test("a provider that opens more than any vendor does is refused", async () => {
  const many = Array.from({ length: 1_100 }, (_, at) => delta("a", { response_id: `r${at}`, item_id: `i${at}` }));
  await assert.rejects(takeAll(many), { code: "llm_response_invalid" });
  const rejected = many.map((event) => ({ ...event, type: "response.output_text.done", text: SECRET }));
  await assert.rejects(takeAll(rejected), { code: "llm_response_invalid" });
  const streams = many.map((_, at) => created("r", { stream_id: String(at) }));
  await assert.rejects(takeAll(streams), { code: "llm_response_invalid" });
});

test("events without text wait for a window at most up to the limit of the buffer", async () => {
  const answers = openAnswers(1_000);
  const audio = { type: "response.output_audio.delta", response_id: "r1", delta: "A".repeat(300) };
  const { events } = await answers.take(delta("hi"));
  assert.deepEqual(events, []);
  const released: string[] = [];
  for (let at = 0; at < 3; at++) released.push(...(await answers.take(audio)).events);
  assert.equal(released.length, 4);
});
