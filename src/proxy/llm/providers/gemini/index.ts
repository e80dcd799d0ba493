/**
 * The provider `llmf`: the Gemini API. Chat goes to the native endpoints, other formats to those that are compatible with
 * OpenAI.
 */
import type { HeaderList } from "../../../../lib/header-list.ts";
import type { HeaderCall, Provider } from "../provider.ts";
import { signCalls } from "../shared/compatible-signatures.ts";
import { geminiMethod } from "../shared/gemini-method.ts";
import { withModel } from "../shared/standard-path.ts";
import { printPathSegment } from "../shared/path-segment.ts";

export const gemini: Provider = {
  defaultHost: () => "generativelanguage.googleapis.com",
  formats: () => ["Gemini", "Completions", "Embeddings"],
  operations: () => ["Models"],
  path(_node, call) {
    const { wire, model, streaming } = call;
    if (wire === "Models") return withModel("/v1beta/openai/models", call);
    if (wire === "Embeddings") return "/v1beta/openai/embeddings";
    if (wire !== "Gemini") return "/v1beta/openai/chat/completions";
    const [, collection = "models", id = model] = /^(models|tunedModels)\/(.*)$/s.exec(model) ?? [];
    return `/v1beta/${collection}/${printPathSegment(id)}${geminiMethod(streaming)}`;
  },
  headers: placeKey,
  adjustBody: signCalls,
};

/**
 * The native endpoints take API keys in x-goog-api-key alone, the compatible ones as a bearer token. Only one credential
 * is sent, because a key of the client for the gateway is none of the provider's.
 */
function placeKey(headers: HeaderList, { wire, credentialHeader }: HeaderCall): void {
  if (credentialHeader === "x-goog-api-key") return headers.remove("authorization");
  const token = /^bearer\s+(.*)$/i.exec(headers.get("authorization") ?? "")?.[1];
  if (credentialHeader !== undefined || token === undefined) return;
  headers.remove("x-goog-api-key");
  if (wire !== "Gemini" || !token.startsWith("AIza")) return;
  headers.remove("authorization");
  headers.set("x-goog-api-key", token);
}
