/**
 * Chooses the Host that is sent: the name of the destination, or the one of the client. A rewrite filter of the route
 * overrides it.
 */
import type { HostRewrite } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Policy } from "./policy.ts";

export const hostRewrite: Policy<HostRewrite> = {
  compile({ auto }) {
    const choice = auto ? "auto" : "keep";
    return function hostRewrite(exchange, next) {
      exchange.hostChoice = choice;
      return next();
    };
  },
};
