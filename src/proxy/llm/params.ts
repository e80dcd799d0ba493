/** Settings of an LLM request as they go to the provider (`llm.params` of runtime/cel.md 3.6). */
import { toDouble } from "../../cel/values.ts";
import { stringOf, type JsonObject } from "./json.ts";

const DOUBLES = ["temperature", "top_p", "frequency_penalty", "presence_penalty"] as const;
const INTEGERS = ["seed", "dimensions"] as const;

/** Those that are set and have the type that they should; without any there is no such member. */
export function paramsOf(body: JsonObject): { params?: Record<string, unknown> } {
  const params: Record<string, unknown> = {};
  for (const name of DOUBLES) {
    const value = body[name];
    if (typeof value === "number") params[name] = toDouble(value);
  }
  for (const name of INTEGERS) if (Number.isSafeInteger(body[name])) params[name] = body[name];
  // The newer name of the same limit.
  const most = body["max_completion_tokens"] ?? body["max_tokens"];
  if (Number.isSafeInteger(most)) params["max_tokens"] = most;
  const encoding = stringOf(body["encoding_format"]);
  if (encoding !== undefined) params["encoding_format"] = encoding;
  return Object.keys(params).length === 0 ? {} : { params };
}
