/** The provider `llma`: the OpenAI platform. */
import { stringOf, type JsonObject } from "../json.ts";
import { standardPath, type Provider } from "./provider.ts";

export const openai: Provider = {
  defaultHost: "api.openai.com",
  supports: () => ["Completions"],
  url: standardPath,
  headers: () => undefined,
  quirks: moveMaxTokens,
};

/** Renames the limit of tokens: gpt models refuse the older name. */
function moveMaxTokens(body: JsonObject): void {
  if (stringOf(body["model"])?.startsWith("gpt-") !== true || body["max_tokens"] === undefined) return;
  body["max_completion_tokens"] ??= body["max_tokens"];
  // JSON.stringify skips undefined members; deleting a member would make the object slow to print.
  body["max_tokens"] = undefined;
}
