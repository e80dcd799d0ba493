/** Reads the formats that the catalog gives a model by tags. Providers whose formats differ by model use it. */
import type { FormatName } from "../../formats/chat-format.ts";

const TAGGED: readonly (readonly [tag: string, format: FormatName])[] = [
  ["completions", "Completions"],
  ["messages", "Messages"],
  ["responses", "Responses"],
];

/** Returns no format when no tag names one. Tags may name the vendor of the format first, as in `openai_responses`. */
export function taggedFormats(tags: ReadonlySet<string>): readonly FormatName[] {
  if (tags.size === 0) return [];
  const isTagged = (tag: string): boolean => tags.has(tag) || tags.has(`openai_${tag}`) || tags.has(`anthropic_${tag}`);
  return TAGGED.filter(([tag]) => isTagged(tag)).map(([, format]) => format);
}
