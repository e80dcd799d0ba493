/** Paths of the formats as their inventors have them; most providers keep them. */
import type { Provider as ProviderNode } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Wire } from "../provider.ts";

const OPERATION: Readonly<Partial<Record<Wire, string>>> = {
  Completions: "/chat/completions",
  Messages: "/messages",
  Responses: "/responses",
  Embeddings: "/embeddings",
};

/** Returns the usual path under the configured prefix, such as `/v1/chat/completions`. */
export function standardPath({ pathPrefix }: ProviderNode, { wire }: { wire: Wire }): string {
  const base = pathPrefix === "" ? "/v1" : pathPrefix.replace(/\/+$/, "");
  return base + (OPERATION[wire] ?? "");
}
