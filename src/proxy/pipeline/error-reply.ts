/**
 * Turns an error into the reply that the client receives (table in exchange/errors.ts): a trailers-only status for gRPC
 * clients, the error format of the client's API on routes to models, plain text otherwise.
 */
import { ProxyError } from "../exchange/errors.ts";
import type { Reply } from "../exchange/exchange.ts";
import { isGrpc } from "../exchange/grpc.ts";
import { printClientError } from "../llm/client-formats/error-answer.ts";
import { pathOf } from "../../lib/network/request-target.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { printError } from "../exchange/print-error.ts";

/**
 * Never throws. Any value that is not a ProxyError becomes an `internal` error whose text appears in the log only.
 * @param origin the policy and field that raised the error, for the log
 */
export function errorReply(exchange: HttpExchange, thrown: unknown, origin?: string): Reply {
  const error = thrown instanceof ProxyError ? thrown : new ProxyError("internal", { cause: thrown });
  exchange.error = error;
  exchange.errorOrigin = origin;
  if (exchange.connect) return printError(error, false);
  const grpc = isGrpc(exchange.requestHeaders);
  if (grpc || error.json !== undefined || !isOfModels(exchange)) return printError(error, grpc);
  const asked = { path: pathOf(exchange.target), format: exchange.clientFormat };
  return { ...printClientError(error, asked, exchange.requestLimitBytes), upstream: false };
}

/**
 * Decides by the backend once one is chosen; before that by the rule, or by the rule that the listener would choose.
 */
function isOfModels(exchange: HttpExchange): boolean {
  const { backend, destination } = exchange;
  return backend === undefined ? destination?.servesModels(exchange) === true : backend.type === "ai";
}
