/** Reasons why an answer ended, in the words of the Gemini API. */
import type { StopReason } from "../../conversation/answer.ts";
import type { Json } from "../../shared/json.ts";

const FILTERED: ReadonlySet<Json | undefined> = new Set(
  (
    "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT " +
    "IMAGE_RECITATION IMAGE_OTHER NO_IMAGE TOO_MANY_TOOL_CALLS"
  ).split(" "),
);

export function readStop(reason: Json | undefined, hasCall: boolean): StopReason {
  if (reason === "MAX_TOKENS") return "length";
  if (FILTERED.has(reason)) return "refusal";
  return hasCall ? "calls" : "end";
}

export function printStop(reason: StopReason): string {
  switch (reason) {
    case "length":
    case "context":
      return "MAX_TOKENS";
    case "refusal":
      return "SAFETY";
    case "end":
    case "stop_sequence":
    case "calls":
    case "pause":
      return "STOP";
  }
}
