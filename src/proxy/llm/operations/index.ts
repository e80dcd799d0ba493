/** The table of operations, by the name of the client's format. */
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { detect } from "./detect.ts";
import { listGeminiModels, listModels } from "./models.ts";
import type { Operation } from "./operation.ts";
import { passThrough } from "./passthrough.ts";
import { relayRealtime, relayResponses } from "./realtime.ts";

const OPERATIONS: Readonly<Record<string, Operation>> = {
  Detect: detect,
  GeminiModels: listGeminiModels,
  Models: listModels,
  Passthrough: passThrough,
  Realtime: relayRealtime,
};

/** @returns undefined for a chat, and for what is not served */
export function findOperation(name: string, { upgrade }: Pick<RoutedExchange, "upgrade">): Operation | undefined {
  if (name === "Responses" && upgrade !== undefined) return relayResponses;
  return Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined;
}

export function isOperation(name: string): boolean {
  return Object.hasOwn(OPERATIONS, name);
}
