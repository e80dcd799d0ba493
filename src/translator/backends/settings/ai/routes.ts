/** Translates `routes` of an `ai` block: the format of a request by the end of its path. */
import type { RouteType as ApiRouteType } from "../../../../../generated/types/ai.ts";
import { RouteType } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { AiFields } from "./ai-field.ts";

const ROUTE_TYPES: Readonly<Record<ApiRouteType, RouteType>> = {
  Completions: RouteType.COMPLETIONS,
  Messages: RouteType.MESSAGES,
  Responses: RouteType.RESPONSES,
  Embeddings: RouteType.EMBEDDINGS,
  MessagesTokenCount: RouteType.MESSAGES_TOKEN_COUNT,
  Realtime: RouteType.REALTIME,
  Models: RouteType.MODELS,
  Passthrough: RouteType.PASSTHROUGH,
  Detect: RouteType.DETECT,
};

export function translateRoutes(routes: Readonly<Record<string, ApiRouteType>>): AiFields {
  const entries = Object.entries(routes).sort(([a], [b]) => (a < b ? -1 : 1));
  return { routes: Object.fromEntries(entries.map(([suffix, type]) => [suffix, ROUTE_TYPES[type]])) };
}
