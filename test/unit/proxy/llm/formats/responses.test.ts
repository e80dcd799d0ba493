/** The Responses format: what the official client makes of printed answers, and what is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import type { Answer } from "../../../../../src/proxy/llm/conversation/answer.ts";
import type { AnswerEvent } from "../../../../../src/proxy/llm/conversation/events.ts";
import { Losses } from "../../../../../src/proxy/llm/conversation/losses.ts";
import { responses } from "../../../../../src/proxy/llm/formats/responses/index.ts";
import type { JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";
import { checkOrder, partsOf, plain } from "../../../../support/fixtures/hub-events.ts";

const { client, provider } = responses;
assert.ok(client !== undefined && provider !== undefined);

const READ = { model: "m", toolNames: undefined };

function readRequest(body: JsonObject) {
  const { model = "m", streaming } = responses.parse(body);
  return client?.readRequest(body, { model, streaming, losses: new Losses() }) as never;
}

/** Runs the official client on a printed answer. */
function clientOf(text: string, type: string): OpenAI {
  const fetch = async (): Promise<Response> => new Response(text, { headers: { "content-type": type } });
  return new OpenAI({ apiKey: "k", baseURL: "http://127.0.0.1/v1", fetch, maxRetries: 0 });
}

const PATCH = '*** Begin Patch\n+"hi"\n*** End Patch';
const ANSWER: Answer = {
  id: "msg_01",
  model: "claude",
  choices: [
    {
      index: 0,
      stop: { reason: "calls" },
      parts: [
        { kind: "reasoning", text: "Let me see.", signature: { vendor: "anthropic", value: "sig" } },
        { kind: "redacted", data: { vendor: "anthropic", value: "hidden" } },
        { kind: "text", text: "I look " },
        { kind: "text", text: "it up." },
        { kind: "call", id: "c1", name: "weather", arguments: '{"city":"Rome"}' },
        { kind: "call", id: "c2", name: "apply_patch", arguments: JSON.stringify({ input: PATCH }) },
        { kind: "call", id: "c3", name: "maps__find", arguments: "" },
      ],
    },
  ],
  facts: { usage: { inputTokens: 9, outputTokens: 4, cachedInputTokens: 5, reasoningTokens: 2 }, serviceTier: "flex" },
};
const REQUEST: JsonObject = {
  model: "claude",
  instructions: "Be kind.",
  input: "hi",
  temperature: 0.5,
  text: { verbosity: "low" },
  tools: [
    { type: "function", name: "weather", parameters: {}, strict: false },
    { type: "custom", name: "apply_patch" },
    { type: "namespace", name: "maps", description: "", tools: [{ type: "function", name: "find" }] },
  ],
};
const CONTEXT = { request: REQUEST, createdAt: 1_700_000_000 };

/** Returns the answer as events, its texts in pieces of three characters. */
function eventsOf({ id, model, choices: [choice], facts }: Answer): AnswerEvent[] {
  assert.ok(choice !== undefined && facts.usage !== undefined);
  const events: AnswerEvent[] = [{ kind: "start", id, model }];
  choice.parts.forEach((part, number) => {
    const place = { choice: 0, part: number };
    if (part.kind === "call")
      events.push({ kind: "open", ...place, opened: { kind: "call", id: part.id, name: part.name } });
    else if (part.kind === "redacted")
      events.push({ kind: "open", ...place, opened: { kind: "redacted", data: part.data } });
    else if (part.kind === "text" || part.kind === "reasoning" || part.kind === "refusal")
      events.push({ kind: "open", ...place, opened: { kind: part.kind } });
    const whole = part.kind === "call" ? part.arguments : "text" in part ? part.text : "";
    for (const piece of whole.match(/[^]{1,3}/g) ?? []) events.push({ kind: "delta", ...place, text: piece });
    if (part.kind === "reasoning" && part.signature !== undefined)
      events.push({ kind: "signature", ...place, signature: part.signature });
    events.push({ kind: "close", ...place });
  });
  const serviceTier = facts.serviceTier === undefined ? {} : { serviceTier: facts.serviceTier };
  events.push({ kind: "usage", usage: facts.usage, ...serviceTier }, { kind: "stop", choice: 0, stop: choice.stop });
  return events;
}

function printed(events: readonly AnswerEvent[]): string {
  const printer = client?.printStream(CONTEXT);
  assert.ok(printer !== undefined);
  return events.map((event) => printer.print(event)).join("") + printer.end();
}

/** Events of the stream without their deltas, a line for each item. */
const EVENTS = `
  created
  output_item.added reasoning_summary_part.added reasoning_summary_text.done reasoning_summary_part.done output_item.done
  output_item.added output_item.done
  output_item.added content_part.added output_text.done content_part.done
                    content_part.added output_text.done content_part.done output_item.done
  output_item.added function_call_arguments.done output_item.done
  output_item.added custom_tool_call_input.done output_item.done
  output_item.added function_call_arguments.done output_item.done
  completed
`;

test("the official client reads a printed answer, and the stream adds up to the same", async () => {
  const whole = plain(client.printAnswer(ANSWER, CONTEXT));
  const answer = await clientOf(JSON.stringify(whole), "application/json").responses.create({
    model: "claude",
    input: "hi",
  });
  assert.equal(answer.output_text, "I look it up.");
  assert.deepEqual(
    answer.output.map(({ type }) => type),
    ["reasoning", "reasoning", "message", "function_call", "custom_tool_call", "function_call"],
  );
  const [thought, hidden, , call, patch, found] = answer.output;
  assert.ok(thought?.type === "reasoning" && hidden?.type === "reasoning");
  assert.deepEqual([thought.summary[0]?.text, thought.encrypted_content], ["Let me see.", "gw1:anthropic:sig"]);
  assert.deepEqual([hidden.summary, hidden.encrypted_content], [[], "gw1:anthropic:hidden"]);
  assert.ok(call?.type === "function_call" && patch?.type === "custom_tool_call" && found?.type === "function_call");
  assert.deepEqual([call.call_id, call.arguments], ["c1", '{"city":"Rome"}']);
  assert.deepEqual([patch.name, patch.input], ["apply_patch", PATCH]);
  assert.deepEqual([found.name, found.namespace, found.arguments], ["find", "maps", "{}"]);
  assert.match(answer.id, /^resp_[0-9a-f]{16}$/);
  assert.deepEqual(
    [answer.status, answer.temperature, answer.top_p, answer.instructions],
    ["completed", 0.5, 1, "Be kind."],
  );
  assert.deepEqual(answer.text, { format: { type: "text" }, verbosity: "low" });
  assert.deepEqual(answer.usage?.output_tokens_details, { reasoning_tokens: 2 });

  const openai = clientOf(printed(eventsOf(ANSWER)), "text/event-stream");
  const stream = openai.responses.stream({ model: "claude", input: "hi" });
  const kinds: string[] = [];
  let sequence = 0;
  for await (const event of stream) {
    kinds.push(event.type);
    assert.equal(event.sequence_number, ++sequence);
  }
  const final = plain(await stream.finalResponse());
  delete final["output_text"];
  const dropParsed = plain(
    JSON.parse(
      JSON.stringify(final, (key, value) => (key.startsWith("parsed") || key === "output_parsed" ? undefined : value)),
    ),
  );
  assert.deepEqual(dropParsed, whole);
  assert.deepEqual(
    kinds.filter((kind) => !kind.endsWith(".delta")).map((kind) => kind.replace("response.", "")),
    EVENTS.trim().split(/\s+/),
  );
});

test("the reader of streams finds the same as the reader of answers", () => {
  const reader = provider.readStream(READ);
  const blocks = printed(eventsOf(ANSWER)).split("\n\n").slice(0, -1);
  const events = blocks.flatMap((block) =>
    reader.read(JSON.parse(block.slice(block.indexOf("data: ") + 6)) as JsonObject, ""),
  );
  checkOrder(events);
  const whole = provider.readAnswer(plain(client.printAnswer(ANSWER, CONTEXT)), READ);
  const [choice] = whole.choices;
  // The identifier of a thought comes only with whole answers.
  const expected = choice?.parts.map((part) => (part.kind === "reasoning" ? { ...part, id: undefined } : part));
  assert.deepEqual(partsOf(events).map(plain), expected?.map(plain));
  assert.deepEqual(events.at(-1), { kind: "stop", choice: 0, stop: choice?.stop });
  assert.deepEqual(events.at(-2), { kind: "usage", usage: whole.facts.usage, serviceTier: "flex" });
});

test("an answer that ends early or fails says so in the words of the API", async () => {
  for (const [reason, status, detail] of [
    ["length", "incomplete", "max_output_tokens"],
    ["context", "incomplete", "max_output_tokens"],
    ["refusal", "incomplete", "content_filter"],
    ["end", "completed", undefined],
  ] as const) {
    const answer: Answer = {
      ...ANSWER,
      choices: [{ index: 0, parts: [{ kind: "text", text: "a" }], stop: { reason } }],
    };
    const whole = plain(client.printAnswer(answer, CONTEXT));
    assert.equal(whole["status"], status);
    assert.equal((whole["incomplete_details"] as { reason?: string } | null)?.reason, detail);
    assert.match(printed(eventsOf(answer)), new RegExp(`event: response.${status}\n[^\n]*\n\n$`));
    const stop: string | undefined = provider.readAnswer(whole, READ).choices[0]?.stop.reason;
    assert.equal(stop, reason === "context" ? "length" : reason);
  }
  const printer = client.printStream(CONTEXT);
  const sse =
    printer.print({ kind: "start", id: "", model: "m" }) +
    printer.print({ kind: "error", error: { message: "too many", type: "rate_limit_error" } });
  assert.match(sse, /"status":"failed","error":\{"code":"rate_limit_exceeded","message":"too many"\}/);
  const stream = await clientOf(sse, "text/event-stream").responses.create({ model: "m", input: "hi", stream: true });
  await assert.rejects(async () => {
    for await (const event of stream) assert.equal(event.type, "response.created");
  }, /too many/);
});

test("what needs the state or the tools of OpenAI is refused, with the path", () => {
  for (const [more, reason] of [
    [{ previous_response_id: "resp_1" }, "previous_response_id cannot be translated for this provider"],
    [{ conversation: "conv_1" }, "conversation cannot be translated for this provider"],
    [{ prompt: { id: "pmpt_1" } }, "prompt cannot be translated for this provider"],
    [{ store: true }, "store must be false, because this provider keeps no answers"],
    [{ background: true }, "background must be false, because this provider keeps no answers"],
    [{ tools: [{ type: "web_search" }] }, 'tools[0]: the tool "web_search" cannot be translated for this provider'],
    [
      { tool_choice: { type: "file_search" } },
      'tool_choice: the tool "file_search" cannot be translated for this provider',
    ],
    [
      { input: [{ type: "item_reference", id: "msg_1" }] },
      'input[0]: an item of type "item_reference" cannot be translated for this provider',
    ],
    [{ input: [{ role: "user", content: [{ type: "input_text" }] }] }, "input[0].content[0].text must be a string"],
    [{ input: [] }, "input must not be empty"],
    [{ input: undefined }, "input must be a string or a list"],
    [{ reasoning: { effort: 3 } }, "reasoning.effort must be a string"],
  ] as const)
    assert.throws(() => readRequest({ model: "m", input: "hi", ...more } as JsonObject), {
      code: "llm_request_invalid",
      text: `failed to process LLM request: ${reason}`,
    });
  for (const harmless of [{ store: false }, { store: null }, { previous_response_id: null }, { background: false }])
    readRequest({ model: "m", input: "hi", ...harmless });
});
