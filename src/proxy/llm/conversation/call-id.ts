/**
 * Identifiers of calls as clients see them. The signature that Gemini puts on a call rides at the end of the identifier,
 * because clients of all formats send that back with the result: `<id>__thought__<signature>`. The readers of requests
 * take it off again, so that it never reaches another vendor, some of whom limit the characters of identifiers.
 */
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
