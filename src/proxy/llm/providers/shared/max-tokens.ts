/** Renames the limit of tokens in chat completions: gpt models of OpenAI and Azure refuse the older name. */
import type { JsonObject } from "../../shared/json.ts";
import type { ProviderCall } from "../provider.ts";

export function moveMaxTokens(body: JsonObject, { wire, model }: ProviderCall): void {
  if (wire !== "Completions" || !model.startsWith("gpt-") || body["max_tokens"] === undefined) return;
  body["max_completion_tokens"] ??= body["max_tokens"];
  // JSON.stringify skips undefined members; deleting a member would make the object slow to print.
  body["max_tokens"] = undefined;
}
