/**
 * Takes the marks of the gateway off the signatures in a body that is not translated. A conversation can move between
 * providers, so its history may hold thoughts that another vendor signed; a provider refuses those.
 */
import { objectOf, type Json, type JsonObject } from "../shared/json.ts";
import type { Vendor } from "./conversation.ts";
import { readSignature } from "./signature.ts";

/** Members in which the formats carry signatures. */
const MEMBERS = ["signature", "data", "encrypted_content", "thoughtSignature", "reasoning_signature"] as const;
/** Types of what is nothing without its signature. */
const THOUGHTS: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking", "reasoning"]);

/**
 * Tells quickly whether a printed body may hold a mark. The engine looks for the first character and compares the rest
 * wherever it occurs, so the rarer end of the mark is sought first.
 */
export function mayHoldMarks(text: string): boolean {
  return text.includes("1:") && text.includes("gw1:");
}

/** Restores signatures of the vendor; thoughts of others are left out, and so are messages that held nothing else. */
export function restoreSignatures(body: JsonObject, vendor: Vendor): void {
  for (const [name, value] of Object.entries(body)) {
    const child = objectOf(value);
    if (child !== undefined) restoreSignatures(child, vendor);
    else if (Array.isArray(value)) body[name] = value.filter((item) => isKept(item, vendor));
  }
}

function isKept(item: Json, vendor: Vendor): boolean {
  const value = objectOf(item);
  if (value === undefined) return true;
  if (!restoreMembers(value, vendor)) return false;
  const { content } = value;
  const hadContent = Array.isArray(content) && content.length > 0;
  restoreSignatures(value, vendor);
  return !(hadContent && Array.isArray(value["content"]) && value["content"].length === 0);
}

/** @returns false when the object is a thought of another vendor */
function restoreMembers(value: JsonObject, vendor: Vendor): boolean {
  for (const name of MEMBERS) {
    const text = value[name];
    if (typeof text !== "string" || !text.startsWith("gw1:")) continue;
    const signature = readSignature(text, vendor);
    if (signature.vendor === vendor) value[name] = signature.value;
    else if (THOUGHTS.has(value["type"])) return false;
    else value[name] = undefined;
  }
  return true;
}
