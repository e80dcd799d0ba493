/** Prompt guards on sessions over WebSocket: what clients send and what providers say, and every action. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { ResponsesWebSocketSession } from "openai/lib/responses/responses-websocket-session";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import type { ResponseDoneEvent as RealtimeResponseDoneEvent } from "openai/resources/realtime/realtime";
import { WebSocketError } from "openai/resources/responses/internal-base";
import { ResponsesWS } from "openai/resources/responses/ws";
import { routePolicy } from "../../support/gateway/gateway.ts";
import { ADDRESS, answerOf, IDS, message, openSession } from "../../support/gateway/guarded-session.ts";
import { AUTHORITY, connectSecurely, openingOf } from "../../support/gateway/secure-session.ts";
import { prove } from "../../support/proofs/prove.ts";

const REJECTS = "regex: {builtins: [Email], action: Reject}, response: {message: withheld}";

/** Events with an address in each place that a guard looks at. */
const CLIENT_EVENTS: Readonly<Record<string, object>> = {
  "a text": message({ type: "input_text", text: `mail ${ADDRESS}` }),
  "a text in two parts": message({ type: "input_text", text: "a" }, { type: "input_text", text: `mail ${ADDRESS}` }),
  "a transcript of speech": message({ type: "input_audio", audio: "AAAA", transcript: `mail ${ADDRESS}` }),
  "instructions of the session": { type: "session.update", session: { instructions: `answer as ${ADDRESS}` } },
  "a hint for speech": {
    type: "session.update",
    session: { audio: { input: { transcription: { model: "w", prompt: `names: ${ADDRESS}` } } } },
  },
  "a hint for speech, as sessions had it in their beta": {
    type: "transcription_session.update",
    session: { input_audio_transcription: { prompt: `names: ${ADDRESS}` } },
  },
  "an addition to an answer": { type: "response.steer", previous_response_id: "resp_1", input: `mail ${ADDRESS}` },
  "instructions of an answer": { type: "response.create", response: { instructions: `answer as ${ADDRESS}` } },
  "input of an answer": {
    type: "response.create",
    response: { input: [{ type: "message", role: "user", content: [{ type: "input_text", text: ADDRESS }] }] },
  },
};

prove([], "a session drops what request guards reject, tells the client, and goes on", async (context) => {
  const { client, realtime } = await openSession(context, `request: [{${REJECTS}}]`);
  for (const [name, event] of Object.entries(CLIENT_EVENTS)) {
    client.send({ event_id: name, ...event });
    const [refused] = await client.until("error");
    assert.deepEqual(refused?.["error"], {
      type: "guardrail_blocked",
      code: "guardrail_intervention",
      message: "withheld",
      param: null,
      event_id: name,
    });
  }
  assert.deepEqual(realtime.received, [], "nothing of it reaches the provider");
  const harmless = message({ type: "input_text", text: "hello" });
  client.send(harmless);
  client.send({ type: "response.create" });
  await client.until("response.done");
  assert.deepEqual(realtime.received, [harmless, { type: "response.create" }]);
});

prove([], "no spelling of a message gets around the guards of a session", async (context) => {
  const { client, realtime } = await openSession(context, `request: [{${REJECTS}}]`);
  const text = JSON.stringify(CLIENT_EVENTS["a text"]);
  const half = Math.floor(text.length / 2);
  // In fragments, with a ping in between.
  client.socket.send(text.slice(0, half), { fin: false });
  client.socket.ping(Buffer.from("between"));
  client.socket.send(text.slice(half), { fin: true });
  await client.until("error");
  client.socket.send(text.replace("@", String.raw`\u0040`));
  await client.until("error");
  client.socket.send(Buffer.from(text), { binary: true });
  await client.until("error");
  for (const unreadable of ["[]", "no JSON", `{"pad":"${"x".repeat(2 * 1024 * 1024)}"}`]) {
    client.socket.send(unreadable);
    await client.until("error");
  }
  // Of two members of one name the provider might take the first one; it gets the one that was checked.
  client.socket.send(
    '{"type":"session.update","session":{"instructions":"bob@example.com"},"session":{"instructions":"b"}}',
  );
  client.send({ type: "response.create" });
  await client.until("response.done");
  assert.deepEqual(realtime.received, [
    { type: "session.update", session: { instructions: "b" } },
    { type: "response.create" },
  ]);
});

prove([], "a client that breaks the protocol of a guarded session learns the reason", async (context) => {
  for (const [bytes, code, reason] of [
    [[0x81, 0x01, 0x61], 1002, "a frame without a mask"],
    [[0x81, 0x81, 0, 0, 0, 0, 0xff], 1007, "text that is not UTF-8"],
  ] as const) {
    const { client, realtime } = await openSession(context, `request: [{${REJECTS}}], response: [{${REJECTS}}]`);
    const closed = Promise.all([once(client.socket, "close"), realtime.closed]);
    // The client has no way to send it.
    (client.socket as unknown as { readonly _socket: Duplex })._socket.write(Buffer.from(bytes));
    const [[told, why], provider] = await closed;
    assert.deepEqual([told, String(why), provider], [code, reason, 1001]);
  }
});

for (const kind of ["output_text", "output_audio_transcript"])
  prove([], `an answer that response guards reject is dropped and cancelled (${kind})`, async (context) => {
    const { client, realtime } = await openSession(context, `response: [{${REJECTS}}]`);
    const filler = Array.from({ length: 120 }, (_, at) => `word ${at}, `);
    realtime.says = answerOf([...filler, "mail bob@exa", "mple.com", " now"], kind);
    client.send({ type: "response.create" });
    const events = await client.until("response.done");
    const seen = JSON.stringify(events);
    assert.ok(seen.includes("word 50"), "windows before the match have passed");
    assert.ok(!seen.includes("bob@"), "nothing of the match has");
    assert.deepEqual(
      events.slice(-2).map(({ type, error, response }) => [type, error ?? (response as { output: unknown }).output]),
      [
        ["error", { type: "guardrail_blocked", code: "guardrail_intervention", message: "withheld", param: null }],
        ["response.done", []],
      ],
    );
    // The session goes on.
    const said = answerOf(["Mail ", "nobody."], kind, { ...IDS, response_id: "resp_2", item_id: "item_2" });
    realtime.says = said;
    client.send({ type: "response.create" });
    assert.deepEqual(await client.until("response.done"), said);
    assert.deepEqual(realtime.received[1], { type: "response.cancel", response_id: "resp_1" });
  });

for (const action of ["Mask", "Audit"])
  prove([], `a session refuses what a guard would mask, and keeps what it only audits (${action})`, async (context) => {
    const guard = `regex: {builtins: [Email], action: ${action}}, response: {message: withheld}`;
    const { client, realtime } = await openSession(context, `request: [{${guard}}], response: [{${guard}}]`);
    const said = answerOf([`mail ${ADDRESS}`]);
    realtime.says = said;
    const message = CLIENT_EVENTS["a text"] ?? {};
    client.send(message);
    client.send({ type: "response.create" });
    const events = await client.until("response.done");
    const refused = events.filter(({ type }) => type === "error").map(({ error }) => (error as Error).message);
    assert.deepEqual(refused, action === "Mask" ? ["withheld"] : []);
    assert.deepEqual(realtime.received, [...(action === "Mask" ? [] : [message]), { type: "response.create" }]);
    // Masks have no effect on answers, as in streams.
    assert.deepEqual(
      events.filter(({ type }) => type !== "error"),
      said,
    );
  });

prove([], "a session of Responses is guarded where streams are", async (context) => {
  const guards = `request: [{${REJECTS}}], response: [{${REJECTS}}]`;
  const { client, realtime } = await openSession(context, guards, { path: "responses" });
  client.send({ type: "response.create", model: "gpt-9", input: `mail ${ADDRESS}` });
  await client.until("error");
  const created = { type: "response.created", response: { id: "resp_1", output: [] } };
  const ids = { item_id: "msg_1", output_index: 0, content_index: 0 };
  const output = [{ type: "message", role: "assistant", content: [{ type: "output_text", text: ADDRESS }] }];
  realtime.says = [
    created,
    { type: "response.output_text.delta", ...ids, delta: "bob@example" },
    { type: "response.output_text.delta", ...ids, delta: ".com" },
    { type: "response.output_text.done", ...ids, text: ADDRESS },
    { type: "response.completed", response: { id: "resp_1", output } },
  ];
  client.send({ type: "response.create", model: "gpt-9", input: "who?" });
  const events = await client.until("error");
  assert.deepEqual(
    events.map(({ type }) => type),
    ["response.created", "error"],
  );
  assert.ok(!JSON.stringify(events).includes("bob"));
  assert.deepEqual(
    realtime.received.map(({ type }) => type),
    ["response.create"],
    "nothing but the second request reaches the provider",
  );
});

const GUARDS = `, ai: {promptGuard: {streaming: Enabled, request: [{${REJECTS}}], response: [{${REJECTS}}]}}`;
const USAGE = { total_tokens: 30, input_tokens: 20, output_tokens: 10 };
const OUTPUT = [
  { type: "message", id: "item_1", role: "assistant", content: [{ type: "output_text", text: `mail ${ADDRESS}` }] },
];

prove([], "the official client of sessions is told what guards refuse, and goes on", async (context) => {
  const limit = routePolicy("limit", "ai", "  traffic: {rateLimit: {local: [{tokens: 60, unit: Hours}]}}");
  const { client, realtime, url } = await connectSecurely(context, "llma: {}", limit, GUARDS);
  // Compressed messages could not be read, so no compression is agreed on.
  const options = { ca: AUTHORITY.certificate, perMessageDeflate: true };
  const session = new OpenAIRealtimeWS({ model: "gpt-9", options }, client);
  const errors: unknown[] = [];
  session.on("error", ({ error, event_id = "" }) => {
    assert.match(event_id, /^event_[0-9a-f]{32}$/);
    errors.push([error?.code, error?.event_id]);
  });
  await once(session.socket, "open");
  const say = (text: string, event_id: string): void =>
    session.send({
      type: "conversation.item.create",
      event_id,
      item: { type: "message", role: "user", content: [{ type: "input_text", text }] },
    });
  say(`mail ${ADDRESS}`, "event_1");
  say("hello", "event_2");
  realtime.says = [
    { type: "response.created", response: { id: "resp_1", status: "in_progress", output: [] } },
    { type: "response.output_text.delta", ...IDS, delta: "mail bob@exam" },
    { type: "response.output_text.delta", ...IDS, delta: "ple.com" },
    { type: "response.output_text.done", ...IDS, text: `mail ${ADDRESS}` },
    { type: "response.done", response: { id: "resp_1", status: "completed", output: OUTPUT, usage: USAGE } },
  ];
  const texts: string[] = [];
  session.on("response.output_text.delta", ({ delta }) => texts.push(delta));
  // The helper `emitted` of the client ends with the first error.
  const ended = new Promise<RealtimeResponseDoneEvent>((resolve) => session.once("response.done", resolve));
  session.send({ type: "response.create" });
  const { response } = await ended;
  assert.deepEqual([response.output, response.usage, texts], [[], USAGE, []]);
  realtime.says = undefined;
  session.send({ type: "response.create" });
  await session.emitted("response.done");
  assert.deepEqual(texts, ["Hello"]);
  assert.deepEqual(errors, [
    ["guardrail_intervention", "event_1"],
    ["guardrail_intervention", undefined],
  ]);
  assert.deepEqual(
    realtime.received.map(({ type }) => type),
    ["conversation.item.create", "response.create", "response.cancel", "response.create"],
  );
  session.close();
  await once(session.socket, "close");
  // The tokens of both answers are charged, of the one that was withheld as well.
  let outcome = "opened";
  while (outcome === "opened") outcome = await openingOf(`${url.replace("https", "wss")}/v1/realtime?model=m`);
  assert.match(outcome, /429/);
});

prove([], "the official client of Responses is told what guards refuse in its stream, and goes on", async (context) => {
  const { client, realtime } = await connectSecurely(context, "llma: {}", "", GUARDS);
  const socket = new ResponsesWS(client, { ca: AUTHORITY.certificate });
  context.after(() => socket.close());
  // Its errors are thrown by the streams as well.
  socket.on("error", () => undefined);
  await new Promise<void>((resolve) => socket.socket.once("open", () => resolve()));
  const session = new ResponsesWebSocketSession(socket, {
    maxLanes: 2,
    maxBufferedEvents: 100,
    maxBufferedBytes: 100_000,
  });
  for (const name of ["a", undefined]) {
    const lane = session.lane(name);
    const of = name === undefined ? {} : { stream_id: name };
    const answer = (id: string, text: string): object[] => {
      const output = [{ id: `m_${id}`, type: "message", role: "assistant", content: [{ type: "output_text", text }] }];
      const ids = { item_id: `m_${id}`, output_index: 0, content_index: 0 };
      return [
        { type: "response.created", response: { id, output: [] }, ...of },
        { type: "response.output_text.delta", ...ids, delta: text, ...of },
        { type: "response.completed", response: { id, status: "completed", output, usage: USAGE }, ...of },
      ];
    };
    const before = realtime.received.length;
    lane.create({ model: "gpt-9", input: "hi", instructions: `answer as ${ADDRESS}` });
    await assert.rejects(lane.finalResponse(), isWithheld);
    realtime.says = answer("resp_1", `mail ${ADDRESS}`);
    lane.create({ model: "gpt-9", input: "who?" });
    await assert.rejects(lane.finalResponse(), isWithheld);
    realtime.says = answer("resp_2", "nobody");
    lane.create({ model: "gpt-9", input: "who?" });
    const { id, output_text, usage } = await lane.finalResponse();
    assert.deepEqual([id, output_text, usage], ["resp_2", "nobody", USAGE]);
    const asked = { type: "response.create", model: "gpt-9", input: "who?", ...of };
    assert.deepEqual(realtime.received.slice(before), [asked, asked]);
  }
});

function isWithheld(error: unknown): boolean {
  return error instanceof WebSocketError && JSON.stringify(error.error).includes('"message":"withheld"');
}
