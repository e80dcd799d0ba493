/**
 * Refuses all traffic that a rejected policy governs: a typing error in a policy must never open a route. The client
 * receives a fixed text; the reason appears in the log and in the status of the policy.
 */
import type { FailClosed } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Policy } from "./policy.ts";

export const failClosed: Policy<FailClosed> = {
  compile({ reason }) {
    return function failClosed() {
      throw new ProxyError("policy_refused", { detail: reason });
    };
  },
};
