/** The limit from a request's arrival to the last byte of its answer. Whoever waits later reads the deadline. */
import type { Timeouts } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Policy } from "./policy.ts";

export const timeouts: Policy<Timeouts> = {
  compile({ requestMs }) {
    return function timeouts(exchange, next) {
      if (requestMs > 0) {
        const deadline = exchange.startedAtMs + requestMs;
        // Another level may have set a shorter one already.
        exchange.deadlineAtMs = Math.min(deadline, exchange.deadlineAtMs ?? deadline);
      }
      return next();
    };
  },
};
