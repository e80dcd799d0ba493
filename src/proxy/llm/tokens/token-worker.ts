/** The worker thread that counts tokens for token-counter.ts. */
import { parentPort } from "node:worker_threads";
import { countTokens } from "./count-tokens.ts";
import type { Encoding } from "./encoding.ts";

export interface CountQuestion {
  readonly id: number;
  readonly texts: readonly string[];
  readonly encoding: Encoding;
}

export interface CountAnswer {
  readonly id: number;
  readonly tokens: number;
}

parentPort?.on("message", (question: CountQuestion) => void answer(question));

async function answer({ id, texts, encoding }: CountQuestion): Promise<void> {
  const counted: CountAnswer = { id, tokens: await countTokens(texts, encoding) };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(counted);
}
