/** Names of models as one segment of a path, for the providers whose paths hold them. */
import { ProxyError } from "../../../exchange/errors.ts";

/** Matches what can end a segment or change its meaning: dot segments, separators, escapes, spaces and controls. */
const UNSAFE = /^\.{0,2}$|[\\/%?#<>"{}|^`\s\p{Cc}]/u;

export function isPathSegment(name: string): boolean {
  return !UNSAFE.test(name);
}

/** Returns the segment, percent-encoded. @throws ProxyError llm_model_invalid for a name that could steer the path */
export function printPathSegment(name: string): string {
  if (isPathSegment(name)) return encodeURIComponent(name).replaceAll("%40", "@");
  throw new ProxyError("llm_model_invalid", {
    text: "failed to process LLM request: model must be a name without separators of paths",
  });
}
