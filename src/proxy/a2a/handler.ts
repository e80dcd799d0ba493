/**
 * The handler of agents that speak the Agent2Agent protocol (A2A 1.0, 0.3 and before): the handler of plain HTTP, with
 * agent cards pointed at the gateway and calls recorded for reports. Streams pass as they come. The registry creates it
 * for `a2a` backends and for Service ports that declare the protocol.
 *
 *     request ──▶ classify ─┬─ card ──────▶ HTTP handler ──▶ card rewritten
 *                           ├─ call ──────▶ HTTP handler ──▶ answer read in passing; a card in it rewritten
 *                           └─ any other ─▶ HTTP handler
 */
import type { Logger } from "../../lib/log.ts";
import type { Reply, RoutedExchange } from "../exchange/exchange.ts";
import { AgentCall } from "./agent-call.ts";
import { dropConditions, rewriteCard, rewritePathResult, rewritePossibleCards, rewriteResult } from "./card-reply.ts";
import { classifyRequest, findCardSuffix, type AgentRequest } from "./classify.ts";
import { rewriteGrpcCard } from "./grpc-card.ts";
import { CARD_METHODS, KNOWN_METHODS } from "./methods.ts";
import { readMethod } from "./request-method.ts";

/** Sends a request to the agent and returns the response as it came. */
type SendRequest = (exchange: RoutedExchange) => Promise<Reply>;

/** @param owner key of the backend, for logs */
export function createA2aHandler(
  http: SendRequest,
  { log, owner }: { readonly log: Logger; readonly owner: string },
): SendRequest {
  return function a2a(exchange) {
    const request = classifyRequest(exchange);
    if (request === undefined) return http(exchange);
    exchange.backend = { name: "", type: "a2a", ...exchange.backend, protocol: "a2a" };
    switch (request.kind) {
      case "card":
        return sendForCard(exchange, http, request.suffix, request.suffix);
      case "path-call":
      case "grpc-call":
        return sendCall(exchange, http, request);
      case "json-rpc-call":
        return sendJsonRpcCall(exchange, http, (fault) =>
          log.warn("method of an A2A call is unknown", { backend: owner, reason: fault }),
        );
    }
  };
}

/**
 * Points cards at the gateway that an agent shows on a path of its own, and extended ones that it answers to calls in
 * JSON-RPC. Other requests pass: the agent may speak another protocol.
 * @param agentSuffix end of that path
 */
export function createCardHandler(http: SendRequest, agentSuffix: string): SendRequest {
  return function agentCard(exchange) {
    const suffix = findCardSuffix(exchange);
    if (suffix !== undefined) return sendForCard(exchange, http, suffix, agentSuffix);
    return exchange.method === "POST" ? sendPossibleCardCall(exchange, http) : http(exchange);
  };
}

async function sendPossibleCardCall(exchange: RoutedExchange, http: SendRequest): Promise<Reply> {
  const { method } = await readMethod(exchange);
  if (!CARD_METHODS.has(method)) return http(exchange);
  exchange.backend = { name: "", type: "a2a", ...exchange.backend, protocol: "a2a" };
  const recorded = startCall(exchange, method, "json-rpc");
  const reply = await rewriteResult(await http(exchange), exchange);
  recorded.watch(reply, exchange.responseLimitBytes);
  return reply;
}

async function sendForCard(
  exchange: RoutedExchange,
  http: SendRequest,
  suffix: string,
  agentSuffix: string,
): Promise<Reply> {
  exchange.backend = { name: "", type: "a2a", ...exchange.backend, protocol: "a2a" };
  dropConditions(exchange.requestHeaders);
  return rewriteCard(await http(exchange), exchange, suffix, agentSuffix);
}

type NamedCall = Extract<AgentRequest, { readonly method: string }>;

async function sendCall(exchange: RoutedExchange, http: SendRequest, call: NamedCall): Promise<Reply> {
  const { kind, method } = call;
  const recorded = startCall(exchange, method, kind === "grpc-call" ? "grpc" : "path");
  const returnsCard = CARD_METHODS.has(method);
  if (returnsCard) dropConditions(exchange.requestHeaders);
  let reply = await http(exchange);
  if (returnsCard && kind === "grpc-call") reply = await rewriteGrpcCard(reply, exchange);
  if (returnsCard && kind === "path-call") reply = await rewritePathResult(reply, exchange, call.suffix);
  recorded.watch(reply, exchange.responseLimitBytes);
  return reply;
}

async function sendJsonRpcCall(
  exchange: RoutedExchange,
  http: SendRequest,
  report: (fault: string) => void,
): Promise<Reply> {
  const { method, fault } = await readMethod(exchange);
  if (fault !== undefined) report(fault);
  const recorded = startCall(exchange, method, "json-rpc");
  let reply = await http(exchange);
  if (CARD_METHODS.has(method)) reply = await rewriteResult(reply, exchange);
  // A card must not get around the gateway because the request was unreadable here and readable at the agent.
  else if (!KNOWN_METHODS.has(method)) reply = await rewritePossibleCards(reply, exchange);
  recorded.watch(reply, exchange.responseLimitBytes);
  return reply;
}

function startCall(exchange: RoutedExchange, method: string, binding: AgentCall["binding"]): AgentCall {
  const call = new AgentCall(method, binding, exchange.requestHeaders);
  exchange.agentCall = call;
  return call;
}
