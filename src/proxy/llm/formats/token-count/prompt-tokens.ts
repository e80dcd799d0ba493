/**
 * Estimates the tokens of a prompt: those of its texts and tools, and what a model adds around each message. The two
 * formats of token counts use it for models whose provider does not count.
 */
import type { Json, JsonObject } from "../../shared/json.ts";
import { TokenCounter } from "../../tokens/token-counter.ts";
import type { FormatTexts } from "../guarded-text.ts";

/** Marks and role of a message, and the marks that begin the answer, as OpenAI describes them for its chat models. */
const TOKENS_PER_MESSAGE = 4;
const TOKENS_PER_ANSWER = 3;
/** Tokens of an image or a document; vendors charge a few hundred to a few thousand, by its size. */
const TOKENS_PER_FILE = 1000;

export interface Prompt {
  /** A body of the format whose texts are read. */
  readonly body: JsonObject;
  readonly model: string;
  readonly texts: FormatTexts;
  /** Definitions of tools, which models read as JSON. */
  readonly tools: readonly Json[];
  /** Number of images and documents. */
  readonly files: number;
}

/** All counts of this thread share one counter, whose thread starts with the first of them. */
const counter = new TokenCounter();

export async function countPromptTokens({ body, model, texts, tools, files }: Prompt): Promise<number> {
  const messages = texts.requestMessages(body).length;
  const counted = await counter.count(
    [...texts.requestTexts(body).map(({ text }) => text), ...tools.map((tool) => JSON.stringify(tool))],
    model,
  );
  return counted + messages * TOKENS_PER_MESSAGE + TOKENS_PER_ANSWER + files * TOKENS_PER_FILE;
}
