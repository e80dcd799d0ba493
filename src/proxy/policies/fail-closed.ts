/**
 * Closes what a refused policy governs: a typing error in a policy must never open a route. The client reads a fixed
 * text; the reason is for the log and the policy's status.
 */
import type { Refusal } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../errors.ts";
import type { Policy } from "./policy.ts";

export const refusal: Policy<Refusal> = {
  compile({ reason }) {
    return function refusal() {
      throw new ProxyError("policy_refused", { detail: reason });
    };
  },
};
