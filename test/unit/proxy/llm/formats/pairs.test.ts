/**
 * Properties of every pair of a client's and a provider's format: how a stream is cut does not matter, a request keeps
 * its meaning through a foreign format and back, and any JSON is printed or refused with 400.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ProxyError } from "../../../../../src/proxy/exchange/errors.ts";
import { addParts, type Conversation, type Part } from "../../../../../src/proxy/llm/conversation/conversation.ts";
import { Losses } from "../../../../../src/proxy/llm/conversation/losses.ts";
import type {
  ChatFormat,
  ClientSide,
  FormatName,
  ProviderSide,
} from "../../../../../src/proxy/llm/formats/chat-format.ts";
import { CHAT_FORMATS } from "../../../../../src/proxy/llm/formats/index.ts";
import { parseObject, type JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";
import { translateStream } from "../../../../../src/proxy/llm/stream/translated-stream.ts";
import { framingOf } from "../../../../../src/proxy/llm/stream/framing.ts";
import { plain } from "../../../../support/fixtures/hub-events.ts";
import { assertProperty, SEED, seededRandom } from "../../../../support/fixtures/seed.ts";
import { NO_LEDGER, readBody, streamFrom } from "../../../../support/gateway/llm-harness.ts";
import { streamMessage } from "../../../../support/servers/llm/anthropic.ts";
import { streamOf } from "../../../../support/servers/llm/bedrock-stream.ts";
import { streamCompletion, streamResponse, type OpenAiAnswer } from "../../../../support/servers/llm/openai-answers.ts";

const CLIENTS: readonly FormatName[] = ["Completions", "Messages", "Responses", "Gemini"];
const PROVIDERS: readonly FormatName[] = [...CLIENTS, "Converse"];

function formatOf(name: FormatName): ChatFormat & { readonly client: ClientSide; readonly provider: ProviderSide } {
  const format = CHAT_FORMATS[name];
  assert.ok(format?.client !== undefined && format.provider !== undefined, name);
  return format as ChatFormat & { readonly client: ClientSide; readonly provider: ProviderSide }; // as asserted
}

function providerOf(name: FormatName): ProviderSide {
  const { provider } = CHAT_FORMATS[name] ?? {};
  assert.ok(provider !== undefined, name);
  return provider;
}

/** Every kind of part, with characters of two, three and four bytes. */
const ANSWER: OpenAiAnswer = {
  reasoning: { text: "Hmm… 🤔 so.", sealed: "c2lnbmVk" },
  text: 'Grüße ☂ "quoted" \\ and a\nline 🌧.',
  calls: [
    { id: "call_1", name: "weather", arguments: '{"city":"Zürich 🏔","days":[1,2]}' },
    { id: "call_2", name: "time", arguments: "{}" },
  ],
};

const SSE = "text/event-stream";

function geminiEvent(part: object, more: object = {}): string {
  const event = { candidates: [{ content: { parts: [part], role: "model" }, index: 0, ...more }], responseId: "r-1" };
  return `data: ${JSON.stringify(event)}\r\n\r\n`;
}

function bytesOf(provider: FormatName): { readonly type: string; readonly bytes: Buffer } {
  const { reasoning, text, calls = [] } = ANSWER;
  switch (provider) {
    case "Completions":
      return { type: SSE, bytes: Buffer.from(streamCompletion(ANSWER, "m", true).join("")) };
    case "Messages": {
      const events = streamMessage(ANSWER, "m").map(
        (e) => `event: ${String(e["type"])}\ndata: ${JSON.stringify(e)}\n\n`,
      );
      return { type: SSE, bytes: Buffer.from(events.join("")) };
    }
    case "Responses":
      return { type: SSE, bytes: Buffer.from(streamResponse(ANSWER, { model: "m" }).join("")) };
    case "Gemini": {
      const made = calls.map(({ name, arguments: given }) => ({
        functionCall: { name, args: JSON.parse(given) as object },
      }));
      const parts = [{ text: reasoning?.text, thought: true, thoughtSignature: reasoning?.sealed }, { text }, ...made];
      const events = [...parts.map((part) => geminiEvent(part)), geminiEvent({ text: "" }, { finishReason: "STOP" })];
      return { type: SSE, bytes: Buffer.from(events.join("")) };
    }
    default: {
      const content = [
        { reasoningContent: { reasoningText: { text: reasoning?.text, signature: reasoning?.sealed } } },
        { text },
        ...calls.map(({ id, name, arguments: given }) => ({
          toolUse: { toolUseId: id, name, input: JSON.parse(given) as object },
        })),
      ];
      const frames = streamOf({ content, stopReason: "tool_use" });
      return { type: "application/vnd.amazon.eventstream", bytes: Buffer.concat(frames) };
    }
  }
}

/** Translates a stream that arrives in these chunks. */
async function translate(client: FormatName, provider: FormatName, chunks: readonly Buffer[]): Promise<string> {
  const framing = framingOf(bytesOf(provider).type);
  const reader = providerOf(provider).readStream({ model: "m", toolNames: undefined });
  const printer = formatOf(client).client.printStream({
    request: {
      stream_options: { include_usage: true },
      generationConfig: { thinkingConfig: { includeThoughts: true } },
    },
    createdAt: 1,
  });
  const context = { ledger: NO_LEDGER, maxEventBytes: 65_536, ...(framing === undefined ? {} : { framing }) };
  const { text, error } = await readBody(translateStream(streamFrom([...chunks]), context, { reader, printer }));
  assert.equal(error, undefined);
  // Converse has no identifiers, so each answer gets one of its own, from which others follow.
  return provider === "Converse" ? text.replaceAll(/"[^"]*[0-9a-f]{16,24}[^"]*"/g, '"id"') : text;
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const borders = [0, ...at.map((each) => each % bytes.length).sort((a, b) => a - b), bytes.length];
  return borders.slice(1).map((end, index) => bytes.subarray(borders[index], end));
}

for (const provider of PROVIDERS)
  for (const client of CLIENTS)
    if (client !== provider)
      test(`a stream of ${provider} reads the same to a client of ${client} however it is cut`, async () => {
        const { bytes } = bytesOf(provider);
        const whole = await translate(client, provider, [bytes]);
        assert.ok(whole.includes("weather"));
        const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
        assert.equal(await translate(client, provider, single), whole, "byte by byte");
        const random = seededRandom(SEED);
        for (let run = 0; run < 8; run++) {
          const borders = Array.from({ length: 1 + Math.floor(random() * 30) }, () => Math.floor(random() * 1e6));
          assert.equal(await translate(client, provider, cut(bytes, borders)), whole, borders.join());
        }
      });

const text = fc.string({ minLength: 1, unit: "binary" }).filter((each) => each.trim() !== "" && each.isWellFormed());
const name = fc.stringMatching(/^[a-z]{1,8}$/);
const argumentsText = fc
  .dictionary(name, fc.oneof(fc.string({ unit: "grapheme" }), fc.integer(), fc.constant(null)), { maxKeys: 3 })
  .map((value) => JSON.stringify(value));

/** One question and its answer, which may call tools and see their results. */
const exchange = fc.record({
  question: text,
  said: fc.option(text, { nil: undefined }),
  calls: fc.array(fc.record({ name, arguments: argumentsText, result: fc.string({ unit: "grapheme" }) }), {
    maxLength: 3,
  }),
  end: text,
});

const conversation = fc
  .record({
    system: fc.array(text, { maxLength: 2 }),
    exchanges: fc.array(exchange, { minLength: 1, maxLength: 3 }),
    last: text,
    maxTokens: fc.integer({ min: 16, max: 9000 }),
    temperature: fc.constantFrom(0, 0.5, 1),
    topP: fc.constantFrom(0.1, 0.9),
    choice: fc.constantFrom("auto" as const, "none" as const, "required" as const),
  })
  .map(({ system, exchanges, last, maxTokens, temperature, topP, choice }): Conversation => {
    const turns: Conversation["turns"] = [];
    let calls = 0;
    for (const each of exchanges) {
      const ids = each.calls.map(() => `call_${++calls}`);
      addParts(turns, "user", [{ kind: "text", text: each.question }]);
      const made = each.calls.map((call, at): Part => ({
        kind: "call",
        id: ids[at] ?? "",
        name: call.name,
        arguments: call.arguments,
      }));
      addParts(turns, "assistant", [...(each.said === undefined ? [] : [textPart(each.said)]), ...made]);
      const results = each.calls.map((call, at): Part => ({
        kind: "result",
        id: ids[at] ?? "",
        parts: [{ kind: "text", text: call.result }],
        isPlain: true,
      }));
      addParts(turns, "user", results);
      addParts(turns, "assistant", [textPart(each.end)]);
    }
    addParts(turns, "user", [textPart(last)]);
    const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    return {
      model: "m-1",
      streaming: false,
      system: system.map((each) => ({ role: "system", text: each })),
      turns,
      tools: [{ kind: "function", name: "lookup", description: "Looks up", schema }],
      toolChoice: { kind: choice },
      sampling: { maxTokens, temperature, topP },
      extra: { vendor: "openai", fields: {} },
    };
  });

function textPart(each: string): Part {
  return { kind: "text", text: each };
}

/** Prints a conversation in a format and reads it again, as a client of the format would have written it. */
function through(given: Conversation, format: FormatName): Conversation {
  const { client, provider } = formatOf(format);
  const { body } = provider.printRequest(given, { losses: new Losses(), tags: new Set() });
  return client.readRequest(plain(body), { model: given.model, streaming: false, losses: new Losses() });
}

/** Returns what has to be kept: who said what in which order, calls with their results, tools and settings. */
function meaningOf({ system, turns, tools, toolChoice, sampling, output }: Conversation): unknown {
  const order = new Map<string, number>();
  const said = turns.map(({ role, parts }) => [role, joined(parts).map((part) => meaningOfPart(part, order))]);
  const { maxTokens, temperature, topP } = sampling;
  return plain({
    system: system.map((each) => each.text).join("\n"),
    said,
    // Responses alone writes down that a schema is not strict.
    tools: tools.map((tool) => ({ strict: false, ...tool })),
    toolChoice,
    sampling: { maxTokens, temperature, topP },
    output,
  });
}

/** Some formats write the texts of a message as one. */
function joined(parts: readonly Part[]): Part[] {
  const list: Part[] = [];
  for (const part of parts) {
    const last = list.at(-1);
    if (part.kind === "text" && last?.kind === "text")
      list[list.length - 1] = { kind: "text", text: last.text + part.text };
    else list.push(part);
  }
  return list;
}

/** Identifiers may change, but not which result belongs to which call. */
function meaningOfPart(part: Part, order: Map<string, number>): unknown {
  switch (part.kind) {
    case "call":
      order.set(part.id, order.size);
      return { call: order.get(part.id), name: part.name, arguments: JSON.parse(part.arguments) as unknown };
    case "result":
      return {
        result: order.get(part.id),
        text: part.parts.map((each) => (each.kind === "text" ? each.text : "?")).join(""),
      };
    case "text":
      return part.text;
    default:
      return part.kind;
  }
}

for (const own of CLIENTS)
  for (const foreign of CLIENTS)
    test(`a request of ${own} keeps its meaning through ${foreign} and back`, () => {
      assertProperty(
        fc.property(conversation, (given) => {
          const before = through(given, own);
          const after = through(through(before, foreign), own);
          assert.deepEqual(meaningOf(after), meaningOf(before));
          assert.deepEqual(meaningOf(before), meaningOf(given));
        }),
        { numRuns: 60 },
      );
    });

const WORDS =
  "user assistant system developer tool function text image image_url input_text input_image output_text tool_use " +
  "tool_result thinking redacted_thinking document base64 url auto any none required json_schema json_object enabled " +
  "adaptive high data:image/png;base64,AA== https://a.test/b.png gs://a/b.png message function_call " +
  "function_call_output reasoning image/png call_1 __proto__ constructor";
const MEMBERS =
  "role content parts text type name id input arguments function tool_calls tool_call_id tool_use_id call_id output " +
  "source media_type data url image_url inlineData mimeType fileData fileUri functionCall functionResponse args response " +
  "thought thoughtSignature thinking signature thinking_blocks summary encrypted_content cache_control tools tool_choice " +
  "functionDeclarations parameters input_schema schema properties $ref response_format output_config format " +
  "generationConfig thinkingConfig thinkingBudget responseSchema max_tokens max_completion_tokens temperature stop " +
  "system systemInstruction instructions metadata user_id reasoning effort budget_tokens stream __proto__ constructor";

/** JSON whose members and texts are mostly words of the formats, in places where they may not belong. */
const anything = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(...WORDS.split(" ")),
    fc.constantFrom(null, true, false, 0, -1, 1e308, 3, "", "\ud800", "ü\u2028"),
    fc.array(tie("value"), { maxLength: 4 }),
    tie("object"),
  ),
  object: fc.dictionary(fc.constantFrom(...MEMBERS.split(" ")), tie("value"), { maxKeys: 6 }),
}));

/** A body that has the turns of every format, so that most of them are read beyond the first check. */
const body = fc
  .record({
    more: anything.object,
    turns: fc.array(
      fc.record({
        role: fc.constantFrom("user", "assistant", "model", "tool", "system"),
        content: anything.value,
        more: anything.object,
      }),
      { minLength: 1, maxLength: 3 },
    ),
  })
  .map(({ more, turns }) => {
    const list = turns.map(({ more: members, ...turn }) => ({ ...members, ...turn }));
    const contents = turns.map(({ role, content }) => ({ role, parts: content }));
    return JSON.stringify({ ...more, messages: list, input: list, contents });
  });

/** Errors that the client gets as 400. */
const REFUSALS = new Set(["llm_request_invalid", "llm_model_invalid", "llm_model_missing"]);

for (const client of CLIENTS)
  test(`any JSON of a client of ${client} is printed for every provider, or refused`, () => {
    assertProperty(
      fc.property(body, (given) => {
        for (const provider of PROVIDERS.filter((each) => each !== client)) {
          const parsed = parseObject(Buffer.from(given));
          assert.ok(parsed !== undefined);
          try {
            JSON.stringify(printed(parsed, client, provider));
          } catch (error) {
            assert.ok(error instanceof ProxyError && REFUSALS.has(error.code), `${provider}: ${String(error)}`);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

function printed(given: JsonObject, client: FormatName, provider: FormatName): JsonObject {
  const format = formatOf(client);
  const { model = "claude-opus-4-5", streaming } = format.parse(given, "/v1beta/models/m:generateContent");
  const losses = new Losses();
  const read = format.client.readRequest(given, { model, streaming, losses });
  return providerOf(provider).printRequest(read, { losses, tags: new Set() }).body;
}
