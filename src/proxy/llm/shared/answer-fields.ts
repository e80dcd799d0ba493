/**
 * Typed access to those fields of a provider's answer that its meaning depends on, for the readers of answers and
 * streams. A field of another type makes the whole answer unusable, because an answer without one of its parts would
 * look complete. `null` counts as absent. Identifiers, counts and remarks are read by json.ts, which skips what has
 * another type.
 */
import { ProxyError } from "../../exchange/errors.ts";
import type { Json, JsonObject } from "./json.ts";

/**
 * @returns "" when the field is absent
 * @throws ProxyError llm_response_invalid for another type
 */
export function readAnswerText(value: Json | undefined, name: string): string {
  if (typeof value === "string") return value;
  return refuseUnlessAbsent(value, name, "a string") ?? "";
}

/**
 * @returns undefined when the field is absent
 * @throws ProxyError llm_response_invalid for another type
 */
export function readAnswerObject(value: Json | undefined, name: string): JsonObject | undefined {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  return refuseUnlessAbsent(value, name, "an object");
}

/**
 * Reads a list of objects; absent means empty.
 * @throws ProxyError llm_response_invalid for another type, also of an entry
 */
export function readAnswerObjects(value: Json | undefined, name: string): JsonObject[] {
  if (!Array.isArray(value)) return refuseUnlessAbsent(value, name, "a list") ?? [];
  return value.map((item) => readAnswerObject(item, name) ?? {});
}

function refuseUnlessAbsent(value: Json | undefined, name: string, type: string): undefined {
  if (value === undefined || value === null) return undefined;
  throw new ProxyError("llm_response_invalid", { detail: `"${name}" of an answer is not ${type}` });
}
