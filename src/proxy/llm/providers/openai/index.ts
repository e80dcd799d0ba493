/** The provider `llma`: the OpenAI platform. */
import type { Provider } from "../provider.ts";
import { moveMaxTokens } from "../shared/max-tokens.ts";
import { standardPath } from "../shared/standard-path.ts";

export const openai: Provider = {
  defaultHost: () => "api.openai.com",
  formats: () => ["Completions", "Responses", "Embeddings", "Rerank"],
  operations: () => ["Models", "Realtime", "ResponsesSocket"],
  path: standardPath,
  adjustBody: moveMaxTokens,
};
