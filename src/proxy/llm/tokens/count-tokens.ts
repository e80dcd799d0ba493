/** Counts the tokens of texts in bounded time. token-worker.ts uses it. */
import type { Encoding } from "./encoding.ts";

/** Bytes of UTF-8 text that count as one token where the text is not encoded. */
const BYTES_PER_TOKEN = 4;
/** Characters of one request that are encoded; what follows them is estimated. */
const MAX_ENCODED = 1024 * 1024;
/**
 * Characters that are encoded as one word. The time for a word grows with the square of its length, and a text of one
 * letter that is repeated is one word.
 */
const MAX_WORD = 256;
const LONG_WORD = new RegExp(`\\S{${MAX_WORD + 1}}|\\s{${MAX_WORD + 1}}`);
/** A word keeps the one space before it, because encodings join both. */
const WORD = new RegExp(`\\s?\\S{1,${MAX_WORD}}|\\s{1,${MAX_WORD}}`, "g");

/** Returns the tokens of a text as 4 bytes each. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

type CountText = (text: string) => number;

export async function countTokens(texts: readonly string[], encoding: Encoding): Promise<number> {
  const countText = await LOADERS[encoding]();
  let left = MAX_ENCODED;
  let tokens = 0;
  for (const text of texts) {
    const encoded = text.slice(0, left);
    left -= encoded.length;
    tokens += countWords(encoded, countText) + estimateTokens(text.slice(encoded.length));
  }
  return tokens;
}

function countWords(text: string, countText: CountText): number {
  if (!LONG_WORD.test(text)) return countText(text);
  let tokens = 0;
  for (const [word] of text.matchAll(WORD)) tokens += countText(word);
  return tokens;
}

/** The ranks of an encoding are a megabyte or two, so each is loaded when it is first needed. */
const LOADERS: Readonly<Record<Encoding, () => Promise<CountText>>> = {
  o200k: async () => counterOf(await import("gpt-tokenizer/encoding/o200k_base")),
  cl100k: async () => counterOf(await import("gpt-tokenizer/encoding/cl100k_base")),
};

interface Tokenizer {
  countTokens(text: string, options: { disallowedSpecial: Set<string> }): number;
  setMergeCacheSize(size: number): void;
}

/** Names of special tokens count as plain text; the library would throw by default. */
const OPTIONS = { disallowedSpecial: new Set<string>() };
/** Words whose tokens are remembered; each has at most MAX_WORD characters. */
const MAX_REMEMBERED = 10_000;

function counterOf({ countTokens: count, setMergeCacheSize }: Tokenizer): CountText {
  setMergeCacheSize(MAX_REMEMBERED);
  return (text) => count(text, OPTIONS);
}
