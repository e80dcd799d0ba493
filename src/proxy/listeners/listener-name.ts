/** Where a listener stands: how its Gateway is named in keys and in logs. */
import type { Listener } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { RoutedExchange } from "../pipeline/exchange.ts";

export function listenerNameOf(bind: string, { gateway, name }: Listener): RoutedExchange["listener"] {
  return { bind, gateway: gateway?.name ?? "", namespace: gateway?.namespace ?? "", name };
}

/** "namespace/name" */
export function gatewayNameOf({ gateway }: Listener): string {
  return `${gateway?.namespace ?? ""}/${gateway?.name ?? ""}`;
}
