/** Paths of the formats as their inventors have them; most providers keep them. */
import type { Provider as ProviderNode } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ProviderCall, Wire } from "../provider.ts";

const OPERATION: Readonly<Partial<Record<Wire, string>>> = {
  Completions: "/chat/completions",
  Messages: "/messages",
  Responses: "/responses",
  Embeddings: "/embeddings",
  Realtime: "/realtime",
  Models: "/models",
  Rerank: "/rerank",
  MessagesTokenCount: "/messages/count_tokens",
};

/** Returns the usual path under the configured prefix, such as `/v1/chat/completions`. */
export function standardPath({ pathPrefix }: ProviderNode, call: Pick<ProviderCall, "wire" | "model">): string {
  const base = pathPrefix === "" ? "/v1" : pathPrefix.replace(/\/+$/, "");
  return withModel(base + (OPERATION[call.wire] ?? ""), call);
}

/** Adds the model where the path names it: to a session, and to the one entry of a list that is asked for. */
export function withModel(path: string, { wire, model }: Pick<ProviderCall, "wire" | "model">): string {
  if (wire === "Realtime") return `${path}?model=${encodeURIComponent(model)}`;
  return (wire === "Models" || wire === "GeminiModels") && model !== "" ? `${path}/${model}` : path;
}
