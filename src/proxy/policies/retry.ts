/**
 * Decides whether a request may be retried, and which responses justify it; pipeline/attempts.ts makes the attempts
 * (GEP-1731).
 */
import type { Retry } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Exchange, RetryPlan } from "../exchange/exchange.ts";
import { holds } from "./shared/expression-support.ts";
import type { Policy } from "./policy.ts";
import { captureResponse } from "./shared/response-support.ts";

export const retry: Policy<Retry> = {
  compile({ attempts, codes, backoffMs, precondition, condition }, deps) {
    const mayRetry = precondition === "" ? undefined : deps.expression(precondition, "request");
    const isWorthIt = condition === "" ? undefined : deps.expression(condition, "response");
    const readsBody = isWorthIt?.reads.responseBody === true;
    const retried = new Set(codes);
    const planFor = (exchange: Exchange): RetryPlan => ({
      attempts,
      backoffMs,
      async wants(reply) {
        if (retried.has(reply.status)) return true;
        return isWorthIt !== undefined && holds(isWorthIt, await captureResponse(exchange, reply, readsBody));
      },
    });
    return function retry(exchange, next) {
      if (mayRetry === undefined || holds(mayRetry, exchange)) exchange.retry = planFor(exchange);
      return next();
    };
  },
};
