/**
 * Beginnings of streamed answers in each provider's format, and the ways in which a provider breaks one. The servers are
 * started by the tests of broken answers.
 */
import { encodeEvent } from "./event-stream-frames.ts";

const sse = (event: object, type?: string): Buffer =>
  Buffer.from(`${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`);

interface Provider {
  /** Members of the provider as YAML flow. */
  readonly key: string;
  readonly type: string;
  /** The beginning of an answer, which says SAID. */
  readonly begin: readonly Buffer[];
  /** Tokens of input that the beginning reports. */
  readonly inputTokens?: number;
  /** Tokens of output that it reports; an answer that comes to its end is not estimated. */
  readonly outputTokens?: number;
  /** One event with more text. */
  say(text: string): Buffer;
}

export const SAID = "Half of it";
/** Tokens by the estimate, for the prompt and for SAID. */
export const ESTIMATED = { input: 1, output: 3 };

const chunk = (content: string): object => ({
  id: "c",
  model: "m",
  choices: [{ index: 0, delta: { role: "assistant", content } }],
});
const delta = (text: string): object => ({
  type: "content_block_delta",
  index: 0,
  delta: { type: "text_delta", text },
});
const candidate = (text: string): object => ({
  candidates: [{ content: { role: "model", parts: [{ text }] } }],
  usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 },
});
const textDelta = (delta: string): object => ({
  type: "response.output_text.delta",
  item_id: "m",
  output_index: 0,
  content_index: 0,
  delta,
});
const block = (text: string): object => ({ contentBlockIndex: 0, delta: { text } });
const SSE = "text/event-stream";

export const PROVIDERS: Readonly<Record<string, Provider>> = {
  completions: {
    key: "custom: {formats: [{type: Completions}]}",
    type: SSE,
    begin: [sse(chunk(SAID))],
    say: (text) => sse(chunk(text)),
  },
  messages: {
    key: "llme: {}",
    type: SSE,
    begin: [
      sse(
        {
          type: "message_start",
          message: {
            id: "m",
            model: "m",
            role: "assistant",
            content: [],
            usage: { input_tokens: 5, output_tokens: 1 },
          },
        },
        "message_start",
      ),
      sse({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }, "content_block_start"),
      sse(delta(SAID), "content_block_delta"),
    ],
    inputTokens: 5,
    say: (text) => sse(delta(text), "content_block_delta"),
  },
  responses: {
    key: "custom: {formats: [{type: Responses}]}",
    type: SSE,
    begin: [
      sse({ type: "response.created", response: { id: "r", model: "m", output: [] } }, "response.created"),
      sse(
        { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "m", content: [] } },
        "response.output_item.added",
      ),
      sse(
        {
          type: "response.content_part.added",
          item_id: "m",
          output_index: 0,
          content_index: 0,
          part: { type: "output_text", text: "" },
        },
        "response.content_part.added",
      ),
      sse(textDelta(SAID), "response.output_text.delta"),
    ],
    say: (text) => sse(textDelta(text), "response.output_text.delta"),
  },
  gemini: {
    key: "llmf: {}",
    type: SSE,
    begin: [sse(candidate(SAID))],
    inputTokens: 7,
    outputTokens: 3,
    say: (text) => sse(candidate(text)),
  },
  converse: {
    key: "llmh: {region: eu-west-1}",
    type: "application/vnd.amazon.eventstream",
    begin: [encodeEvent("messageStart", { role: "assistant" }), encodeEvent("contentBlockDelta", block(SAID))],
    say: (text) => encodeEvent("contentBlockDelta", block(text)),
  },
};

/** More than the limit of 2 MiB. */
const LONG_BYTES = 3 * 1024 * 1024;
export const LONG = "an event that is too long";
export const EMPTY = "an empty stream";
export const DIES = "a connection that dies";

/** The bytes that a provider sends, and whether the connection dies behind them. */
export const FAULTS: Readonly<
  Record<string, (provider: Provider) => { readonly bytes: Buffer; readonly dies?: true }>
> = {
  [EMPTY]: () => ({ bytes: Buffer.alloc(0) }),
  [DIES]: () => ({ bytes: Buffer.alloc(0), dies: true }),
  garbage: ({ type }) => ({ bytes: type === SSE ? Buffer.from("data: {nonsense\n\n") : Buffer.from("{}".repeat(40)) }),
  [LONG]: (provider) => ({ bytes: provider.say("x".repeat(LONG_BYTES)) }),
  "a bad checksum": ({ type, begin }) => {
    const [first = Buffer.alloc(0)] = begin;
    const damaged = Buffer.from(first);
    damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 1;
    return { bytes: type === SSE ? Buffer.from("data: [1]\n\n") : damaged };
  },
};
