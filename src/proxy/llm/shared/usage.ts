/**
 * Usage of LLM requests in tokens. Counts are normalised so that providers are comparable: input includes tokens read
 * from and written to a cache.
 */
export interface Usage {
  /** Includes cached tokens. */
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens?: number;
  cacheCreationInputTokens?: number;
  reasoningTokens?: number;
  /** Parts of the input and of the output by kind, where the provider splits them. */
  inputTextTokens?: number;
  inputAudioTokens?: number;
  inputImageTokens?: number;
  outputTextTokens?: number;
  outputAudioTokens?: number;
  outputImageTokens?: number;
  /** Counts as the provider reported them. */
  providerInputTokens?: number;
  providerTotalTokens?: number;
}

/** Model and usage that a response reports; filled step by step while a stream runs. */
export interface Facts {
  model?: string;
  usage?: Usage;
  /** Whether `usage` only tells how a stream begins; the counts at its end are still to come. */
  hasRunningUsage?: boolean;
  serviceTier?: string;
  /** Tokens of a prompt, where the request asked to count them. */
  countTokens?: number;
}
