/**
 * Identifiers of calls as clients see them. The signature that Gemini puts on a call rides at the end of the identifier,
 * because clients of all formats send that back with the result: `<id>__thought__<signature>`. The readers of requests
 * take it off again, so that it never reaches another vendor, some of whom limit the characters of identifiers.
 */
import { listOf, objectOf, type Json, type JsonObject } from "../shared/json.ts";
import type { CallPart, Signature } from "./conversation.ts";
import { readSignature } from "./signature.ts";

const SEPARATOR = "__thought__";

export function printCallId({ id, signature }: Pick<CallPart, "id" | "signature">): string {
  return signature?.vendor === "google" ? id + SEPARATOR + signature.value : id;
}

export function readCallId(text: string): { readonly id: string; readonly signature?: Signature } {
  const at = text.indexOf(SEPARATOR);
  if (at === -1) return { id: text };
  return { id: text.slice(0, at), signature: readSignature(text.slice(at + SEPARATOR.length), "google") };
}

const ID_MEMBERS = ["id", "call_id", "tool_call_id", "tool_use_id"] as const;

/**
 * Takes the signatures off the identifiers in a body that is not translated, of any format: a conversation that began
 * with Gemini and moved on holds identifiers longer than the 64 characters that OpenAI accepts. Looking at the places of
 * identifiers costs less than a search of the printed text, which tools and prompts make long.
 */
export function restoreCallIds(body: JsonObject): void {
  for (const items of [body["messages"], body["input"]])
    for (const item of listOf(items)) {
      restoreId(item);
      const { content, tool_calls: calls } = objectOf(item) ?? {};
      for (const part of listOf(content)) restoreId(part);
      for (const call of listOf(calls)) restoreId(call);
    }
}

function restoreId(item: Json): void {
  const object = objectOf(item);
  if (object === undefined) return;
  for (const name of ID_MEMBERS) {
    const text = object[name];
    if (typeof text === "string" && text.includes(SEPARATOR)) object[name] = readCallId(text).id;
  }
}
