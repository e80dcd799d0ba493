/**
 * Describes a finished LLM request, read from its `llm` root (docs/reference/expressions.md), for log fields and
 * token metrics.
 */
import { Duration } from "../../cel/values.ts";
import { isRecord } from "../../lib/is-record.ts";
import type { LlmSample } from "../../telemetry/metrics.ts";

export class LlmInfo {
  /** Value of gen_ai.operation.name: chat is the only operation that is served. */
  readonly operation = "chat";
  readonly #root: Record<string, unknown>;

  constructor(root: Record<string, unknown>) {
    this.#root = root;
  }

  /** @returns undefined when the request did not go to an LLM */
  static of(root: unknown): LlmInfo | undefined {
    return isRecord(root) ? new LlmInfo(root) : undefined;
  }

  text(name: string): string | undefined {
    const value = own(this.#root, name);
    return typeof value === "string" ? value : undefined;
  }

  count(name: string): bigint | undefined {
    return integerOf(own(this.#root, name));
  }

  seconds(name: string): number | undefined {
    const value = own(this.#root, name);
    return value instanceof Duration ? value.seconds + value.nanos / 1e9 : undefined;
  }

  /** Returns a setting of the request, as `llm.params` contains it. */
  param(name: string): unknown {
    const params = own(this.#root, "params");
    return isRecord(params) ? own(params, name) : undefined;
  }

  get sample(): LlmSample {
    const tokens = (name: string): number | undefined => {
      const count = this.count(name);
      return count === undefined ? undefined : Number(count);
    };
    return {
      operation: this.operation,
      system: this.text("provider") ?? "unknown",
      requestModel: this.text("requestModel") ?? "unknown",
      responseModel: this.text("responseModel") ?? "unknown",
      tokens: {
        input: tokens("inputTokens"),
        output: tokens("outputTokens"),
        input_cache_read: tokens("cachedInputTokens"),
        input_cache_write: tokens("cacheCreationInputTokens"),
      },
      secondsToFirstToken: this.seconds("timeToFirstToken"),
      secondsPerOutputToken: this.seconds("timePerOutputToken"),
    };
  }
}

/** @returns undefined when the value is not a whole number */
export function integerOf(value: unknown): bigint | undefined {
  if (typeof value === "bigint") return value;
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

function own(record: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
