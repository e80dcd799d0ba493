/** Prints answers of Converse as event streams, for the strict Bedrock server and for tests of the reader. */
import { encodeEvent, encodeException } from "./event-stream-frames.ts";

export interface BedrockAnswer {
  /** Blocks of the message. */
  readonly content?: readonly object[];
  readonly stopReason?: string;
  readonly usage?: object;
  /** Answers with an error instead. */
  readonly error?: { readonly status: number; readonly type: string; readonly message: string };
  /** Ends a stream after the content, instead of a clean end. */
  readonly exception?: { readonly type: string; readonly message: string };
  /** Flips a bit of the last frame of a stream. */
  readonly isDamaged?: boolean;
}

export const USAGE = { inputTokens: 11, outputTokens: 7, totalTokens: 18 };

/** Returns the frames of an answer, from `messageStart` to `metadata` or to an exception. */
export function streamOf(answer: BedrockAnswer): Buffer[] {
  const { content = [{ text: "Hello." }], stopReason = "end_turn", usage = USAGE, exception } = answer;
  const frames = [encodeEvent("messageStart", { p: "abcd", role: "assistant" })];
  content.forEach((block, index) => frames.push(...framesOf(block as Block, index)));
  if (exception !== undefined) frames.push(encodeException(exception.type, exception.message));
  else {
    frames.push(encodeEvent("messageStop", { p: "abc", stopReason }));
    frames.push(encodeEvent("metadata", { metrics: { latencyMs: 12 }, p: "ab", usage }));
  }
  const last = frames.at(-1);
  if (answer.isDamaged === true && last !== undefined) last[20] = (last[20] ?? 0) ^ 1;
  return frames;
}

interface Block {
  readonly text?: string;
  readonly toolUse?: { readonly toolUseId: string; readonly name: string; readonly input: object };
  readonly reasoningContent?: {
    readonly reasoningText?: { readonly text: string; readonly signature: string };
    readonly redactedContent?: string;
  };
}

/** Splits a block into events as the service does: pieces of text, and arguments in pieces after an empty one. */
function framesOf({ text, toolUse, reasoningContent }: Block, contentBlockIndex: number): Buffer[] {
  const delta = (each: object): Buffer =>
    encodeEvent("contentBlockDelta", { contentBlockIndex, delta: each, p: "abcdef" });
  const frames: Buffer[] = [];
  if (toolUse !== undefined) {
    const { toolUseId, name, input } = toolUse;
    frames.push(encodeEvent("contentBlockStart", { contentBlockIndex, start: { toolUse: { name, toolUseId } } }));
    for (const piece of ["", ...pieces(JSON.stringify(input))]) frames.push(delta({ toolUse: { input: piece } }));
  }
  for (const piece of pieces(text ?? "")) frames.push(delta({ text: piece }));
  const { reasoningText, redactedContent } = reasoningContent ?? {};
  for (const piece of pieces(reasoningText?.text ?? "")) frames.push(delta({ reasoningContent: { text: piece } }));
  if (reasoningText !== undefined) frames.push(delta({ reasoningContent: { signature: reasoningText.signature } }));
  if (redactedContent !== undefined) frames.push(delta({ reasoningContent: { redactedContent } }));
  frames.push(encodeEvent("contentBlockStop", { contentBlockIndex, p: "ab" }));
  return frames;
}

function pieces(text: string): string[] {
  return text.match(/.{1,5}/gsu) ?? [];
}
