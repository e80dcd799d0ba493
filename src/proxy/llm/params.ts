/**
 * Reads the settings of an LLM request for `llm.params` in expressions and telemetry (docs/reference/expressions.md).
 */
import { toDouble } from "../../cel/values.ts";
import { stringOf, type JsonObject } from "./json.ts";

const DOUBLES = ["temperature", "top_p", "frequency_penalty", "presence_penalty"] as const;
const INTEGERS = ["seed", "dimensions"] as const;

/** Returns the settings that are present with the right type; the member `params` is absent when there are none. */
export function paramsOf(body: JsonObject): { params?: Record<string, unknown> } {
  const params: Record<string, unknown> = {};
  for (const name of DOUBLES) {
    const value = body[name];
    if (typeof value === "number") params[name] = toDouble(value);
  }
  for (const name of INTEGERS) if (Number.isSafeInteger(body[name])) params[name] = body[name];
  // max_completion_tokens is the newer name of the same limit.
  const most = body["max_completion_tokens"] ?? body["max_tokens"];
  if (Number.isSafeInteger(most)) params["max_tokens"] = most;
  const encoding = stringOf(body["encoding_format"]);
  if (encoding !== undefined) params["encoding_format"] = encoding;
  return Object.keys(params).length === 0 ? {} : { params };
}
