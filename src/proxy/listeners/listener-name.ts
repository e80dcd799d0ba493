/** Names of a listener and its Gateway, as keys and logs write them. */
import type { Listener } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";

export function listenerNameOf(bind: string, { gateway, name }: Listener): RoutedExchange["listener"] {
  return { bind, gateway: gateway?.name ?? "", namespace: gateway?.namespace ?? "", name };
}

/** Returns "namespace/name". */
export function gatewayNameOf({ gateway }: Listener): string {
  return `${gateway?.namespace ?? ""}/${gateway?.name ?? ""}`;
}
