/**
 * Describes a finished LLM request, read from its `llm` root (docs/reference/expressions.md), for log fields and
 * token metrics.
 */
import { doubleOf, Duration, isDouble } from "../../../cel/values.ts";
import { isRecord } from "../../../lib/is-record.ts";
import { LOOKUP_STATUS } from "../../llm/cost/price.ts";
import type { LlmSample } from "../../../telemetry/metrics.ts";

export class LlmInfo {
  /** Value of gen_ai.operation.name: chat is the only operation that is served. */
  readonly operation = "chat";
  readonly #root: Record<string, unknown>;

  constructor(root: Record<string, unknown>) {
    this.#root = root;
  }

  /** Status of the look-up in the model catalog; undefined where no usage was priced. */
  get #lookup(): string | undefined {
    const status: unknown = Reflect.get(this.#root, LOOKUP_STATUS);
    if (typeof status === "string") return status;
    return this.count("totalTokens") === undefined ? undefined : "NoCatalog";
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

  /** Returns dollars of `llm.cost`. */
  cost(name: string): number | undefined {
    const cost = own(this.#root, "cost");
    const value = isRecord(cost) ? own(cost, name) : undefined;
    return isDouble(value) ? doubleOf(value) : undefined;
  }

  isTrue(name: string): true | undefined {
    return own(this.#root, name) === true ? true : undefined;
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
      costUsd: this.cost("total"),
      lookup: this.#lookup,
      secondsToFirstToken: this.seconds("timeToFirstToken"),
      secondsPerOutputToken: this.seconds("timePerOutputToken"),
    };
  }
}

/** Prints dollars without exponent, which programs that read logs may not know. */
export function decimalOf(dollars: number): string {
  const text = String(dollars);
  return text.includes("e") ? dollars.toFixed(12).replace(/\.?0+$/, "") : text;
}

/** @returns undefined when the value is not a whole number */
export function integerOf(value: unknown): bigint | undefined {
  if (typeof value === "bigint") return value;
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

function own(record: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
