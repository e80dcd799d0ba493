/**
 * Signatures of calls in chat completions of Gemini models: the endpoints of Google that are compatible with OpenAI carry
 * them in `extra_content.google.thought_signature`, and newer models refuse calls without the one that they made.
 */
import type { CallPart, Signature } from "../../conversation/conversation.ts";
import { objectOf, stringOf, type JsonObject } from "../../shared/json.ts";

export function readThoughtSignature(call: JsonObject): { readonly signature?: Signature } {
  const google = objectOf(objectOf(call["extra_content"])?.["google"]);
  const value = stringOf(google?.["thought_signature"]) ?? "";
  return value === "" ? {} : { signature: { vendor: "google", value } };
}

/** Returns the member of a call; other models refuse it. */
export function printThoughtSignature({ signature }: CallPart, model: string): JsonObject {
  if (signature?.vendor !== "google" || !/gemini/i.test(model)) return {};
  return { extra_content: { google: { thought_signature: signature.value } } };
}
