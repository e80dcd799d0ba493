/** The LLM facts of a request, read from the `llm` root when it is over: log fields and token counts. */
import type { LlmSample } from "../telemetry/metrics.ts";
import type { AccessRecord } from "../telemetry/access-log.ts";

export interface LlmFacts extends LlmSample {
  readonly fields: AccessRecord;
}

/** @returns undefined when the request was none of an LLM's */
export function readLlm(root: unknown): LlmFacts | undefined {
  if (typeof root !== "object" || root === null) return undefined;
  const get = (name: string): unknown =>
    // A Map or a plain object, both by own entries only.
    root instanceof Map
      ? root.get(name)
      : Object.hasOwn(root, name)
        ? (root as Record<string, unknown>)[name]
        : undefined;
  const text = (name: string): string | undefined => {
    const value = get(name);
    return typeof value === "string" ? value : undefined;
  };
  const count = (name: string): number | undefined => {
    const value = get(name);
    return typeof value === "number" || typeof value === "bigint" ? Number(value) : undefined;
  };
  const sample = {
    operation: "chat",
    system: text("provider") ?? "unknown",
    requestModel: text("requestModel") ?? "unknown",
    responseModel: text("responseModel") ?? "unknown",
    tokens: {
      input: count("inputTokens"),
      output: count("outputTokens"),
      input_cache_read: count("cachedInputTokens"),
      input_cache_write: count("cacheCreationInputTokens"),
    },
  };
  return {
    ...sample,
    fields: {
      "gen_ai.operation.name": sample.operation,
      "gen_ai.provider.name": text("provider"),
      "gen_ai.request.model": text("requestModel"),
      "gen_ai.response.model": text("responseModel"),
      "gen_ai.usage.input_tokens": sample.tokens.input,
      "gen_ai.usage.cache_creation.input_tokens": sample.tokens.input_cache_write,
      "gen_ai.usage.cache_read.input_tokens": sample.tokens.input_cache_read,
      "gen_ai.usage.output_tokens": sample.tokens.output,
      "gen_ai.usage.reasoning_tokens": count("reasoningTokens"),
    },
  };
}
