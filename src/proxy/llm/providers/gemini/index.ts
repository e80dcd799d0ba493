/**
 * The provider `llmf`: the Gemini API. Chat goes to the native endpoints, other formats to those that are compatible with
 * OpenAI.
 */
import type { HeaderList } from "../../../../lib/header-list.ts";
import type { HeaderCall, Provider, Wire } from "../provider.ts";
import type { OperationForm } from "../../shared/operation-form.ts";
import { listOf, objectOf, type JsonObject } from "../../shared/json.ts";
import { signCalls } from "../shared/compatible-signatures.ts";
import { geminiMethod } from "../shared/gemini-method.ts";
import { withModel } from "../shared/standard-path.ts";
import { REFUSED_BY_GOOGLE } from "../shared/google-parameters.ts";
import { printPathSegment } from "../shared/path-segment.ts";

/** Formats of the native endpoints. */
const NATIVE: ReadonlySet<Wire> = new Set<Wire>([
  "Gemini",
  "GeminiModels",
  "GeminiTokenCount",
  "EmbedContent",
  "BatchEmbedContents",
]);

/** Methods of operations beside chat. */
const METHODS: Readonly<Partial<Record<Wire, string>>> = {
  GeminiTokenCount: ":countTokens",
  EmbedContent: ":embedContent",
  BatchEmbedContents: ":batchEmbedContents",
};

/** Counts with instructions or tools have to be wrapped as the request whose tokens they are. */
const wrappedCount: OperationForm = {
  printRequest: ({ contents = [], ...more }, model) =>
    Object.values(more).every((value) => value === undefined)
      ? { contents }
      : { generateContentRequest: { ...more, contents, model: resourceOf(model).join("/") } },
  readAnswer: (answer) => answer,
};

export const gemini: Provider = {
  refusedParameters: REFUSED_BY_GOOGLE,
  defaultHost: () => "generativelanguage.googleapis.com",
  formats: () => ["Gemini", "Completions", "Embeddings", "EmbedContent", "BatchEmbedContents", "GeminiTokenCount"],
  operations: () => ["Models", "GeminiModels"],
  path(_node, call) {
    const { wire, model, streaming } = call;
    if (wire === "Models") return withModel("/v1beta/openai/models", call);
    if (wire === "GeminiModels") return withModel("/v1beta/models", call);
    if (wire === "Embeddings") return "/v1beta/openai/embeddings";
    if (!NATIVE.has(wire)) return "/v1beta/openai/chat/completions";
    const [collection, id] = resourceOf(model);
    const method = METHODS[wire] ?? geminiMethod(streaming);
    return `/v1beta/${collection}/${printPathSegment(id)}${method}`;
  },
  ownForm: ({ wire }) => (wire === "GeminiTokenCount" ? wrappedCount : undefined),
  headers: placeKey,
  adjustBody(body, call) {
    if (call.wire === "EmbedContent") body["model"] = resourceOf(call.model).join("/");
    else if (call.wire === "BatchEmbedContents") nameModels(body, resourceOf(call.model).join("/"));
    else signCalls(body, call);
  },
};

/** Requests of a batch name the model again, which may be another one after aliases. */
function nameModels(body: JsonObject, model: string): void {
  body["requests"] = listOf(body["requests"]).map((request) => ({ ...objectOf(request), model }));
}

/** Returns the collection of a model and its name there. */
function resourceOf(model: string): [collection: string, id: string] {
  const [, collection = "models", id = model] = /^(models|tunedModels)\/(.*)$/s.exec(model) ?? [];
  return [collection, id];
}

/**
 * The native endpoints take API keys in x-goog-api-key alone, the compatible ones as a bearer token. Only one credential
 * is sent, because a key of the client for the gateway is none of the provider's.
 */
function placeKey(headers: HeaderList, { wire, credentialHeader }: HeaderCall): void {
  if (credentialHeader === "x-goog-api-key") return headers.remove("authorization");
  const token = /^bearer\s+(.*)$/i.exec(headers.get("authorization") ?? "")?.[1];
  if (credentialHeader !== undefined || token === undefined) return;
  headers.remove("x-goog-api-key");
  if (!NATIVE.has(wire) || !token.startsWith("AIza")) return;
  headers.remove("authorization");
  headers.set("x-goog-api-key", token);
}
