/**
 * Limits the time from the arrival of a request to the last byte of its response (GEP-1742). Later waits respect the
 * deadline that it sets.
 */
import type { Timeouts } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Policy } from "./policy.ts";

export const timeouts: Policy<Timeouts> = {
  compile({ requestMs }) {
    return function timeouts(exchange, next) {
      if (requestMs > 0) {
        const deadline = exchange.startedAtMs + requestMs;
        // Another level may have set an earlier deadline.
        exchange.deadlineAtMs = Math.min(deadline, exchange.deadlineAtMs ?? deadline);
      }
      return next();
    };
  },
};
