/**
 * Signs calls in chat completions for Google's endpoints that are compatible with OpenAI: newer Gemini models refuse a
 * call without a signature. Both providers of Google use it.
 */
import { NO_SIGNATURE, needsSignatures } from "../../formats/gemini/generation.ts";
import { listOf, objectOf, type JsonObject } from "../../shared/json.ts";
import type { ProviderCall } from "../provider.ts";

/** Of parallel calls the first one is signed. */
export function signCalls(body: JsonObject, { wire, model }: ProviderCall): void {
  if (wire !== "Completions" || !needsSignatures(model)) return;
  for (const message of listOf(body["messages"])) {
    const call = objectOf(listOf(objectOf(message)?.["tool_calls"])[0]);
    if (call !== undefined) call["extra_content"] ??= { google: { thought_signature: NO_SIGNATURE } };
  }
}
