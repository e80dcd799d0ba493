/** What differs between the models behind Converse, by their names. */

/** Claude takes thinking and choices of tools in fields of its own, others in theirs or not at all. */
export type Family = "claude" | "nova" | "gpt-oss" | "other";

/** An application inference profile does not name its model. It is taken for a Claude model. */
const PROFILE = "application-inference-profile";
/** Claude models that are older than prompt caching. */
const CANNOT_CACHE = /claude-(?:instant|v1|v2)/;

export function familyOf(model: string): Family {
  const name = model.toLowerCase();
  if (name.includes("claude") || name.includes(PROFILE)) return "claude";
  if (name.includes("amazon.nova")) return "nova";
  return name.includes("gpt-oss") ? "gpt-oss" : "other";
}

/** Whether the model accepts cache points; others refuse a request with one. */
export function canCache(model: string): boolean {
  const name = model.toLowerCase();
  if (name.includes("anthropic.claude")) return !CANNOT_CACHE.test(name);
  return name.includes("amazon.nova") || name.includes(PROFILE);
}
