/**
 * Reads the settings of an LLM request for `llm.params` in expressions and telemetry (docs/reference/expressions.md).
 */
import { toDouble } from "../../cel/values.ts";
import { objectOf, stringOf, type JsonObject } from "./shared/json.ts";

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
  readGenerationConfig(objectOf(body["generationConfig"] ?? body["generation_config"]), params);
  return Object.keys(params).length === 0 ? {} : { params };
}

/** Names of doubles in requests of the Gemini API, by those in expressions. */
const GEMINI_DOUBLES = [
  ["temperature", "temperature"],
  ["topP", "top_p"],
  ["frequencyPenalty", "frequency_penalty"],
  ["presencePenalty", "presence_penalty"],
] as const;

function readGenerationConfig(config: JsonObject | undefined, params: Record<string, unknown>): void {
  if (config === undefined) return;
  for (const [name, shown] of GEMINI_DOUBLES) {
    const value = config[name];
    if (typeof value === "number") params[shown] = toDouble(value);
  }
  if (Number.isSafeInteger(config["seed"])) params["seed"] = config["seed"];
  if (Number.isSafeInteger(config["maxOutputTokens"])) params["max_tokens"] = config["maxOutputTokens"];
}
