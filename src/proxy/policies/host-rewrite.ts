/** Chooses the Host that leaves: the destination's name or what the client sent. A rewrite of the route beats it. */
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
