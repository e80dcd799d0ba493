/**
 * Tells what a request to an agent is, from its method and the path that the client sent: a request for the agent's card,
 * a call, or something else. `handler.ts` uses it, once per attempt.
 */
import { pathOf } from "../../lib/network/request-target.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";
import { isGrpc } from "../exchange/grpc.ts";
import { methodOfGrpcPath, methodOfPath } from "./methods.ts";

/** The well-known paths of cards: since 0.3, and before. */
const CARD_PATHS = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

export type AgentRequest =
  | { readonly kind: "card"; readonly suffix: string }
  /** `suffix` is what follows the path of the interface. */
  | { readonly kind: "path-call"; readonly method: string; readonly suffix: string }
  | { readonly kind: "grpc-call"; readonly method: string }
  /** A call whose method stands in its body. */
  | { readonly kind: "json-rpc-call" };

type RequestLine = Pick<RoutedExchange, "method" | "originalTarget" | "requestHeaders">;

/** @returns undefined for a request that passes without being looked at */
export function classifyRequest({ method, originalTarget, requestHeaders }: RequestLine): AgentRequest | undefined {
  const path = pathOf(originalTarget);
  const suffix = findCardSuffix({ method, originalTarget });
  if (suffix !== undefined) return { kind: "card", suffix };
  if (method === "POST" && isGrpc(requestHeaders)) {
    const called = methodOfGrpcPath(path);
    return called === undefined ? undefined : { kind: "grpc-call", method: called };
  }
  const call = methodOfPath(method, path);
  if (call !== undefined) return { kind: "path-call", method: call.method, suffix: path.slice(call.base.length) };
  return method === "POST" ? { kind: "json-rpc-call" } : undefined;
}

/** Matches the last two segments of a path. */
const END = /\/[^/]*\/[^/]+\/*$/;

/**
 * Returns the well-known path that a request for a card ends with, as the client spelled it; undefined for another
 * request. Agents differ in which spellings they take for the same path, and none may show a card past the gateway.
 */
export function findCardSuffix({ method, originalTarget }: Omit<RequestLine, "requestHeaders">): string | undefined {
  if (method !== "GET" && method !== "HEAD") return undefined;
  const [end] = END.exec(pathOf(originalTarget)) ?? [];
  return end !== undefined && CARD_PATHS.includes(plain(end)) ? end : undefined;
}

function plain(path: string): string {
  const text = path.replace(/\/+$/, "").toLowerCase();
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text).toLowerCase();
  } catch {
    return text; // broken percent-encoding spells no card
  }
}
