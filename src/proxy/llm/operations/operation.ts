/**
 * The interface of an operation: a request that is no chat and goes to the provider as it is. index.ts has the table.
 */
import type { BackendDeps } from "../../backends/handler.ts";
import type { Body } from "../../exchange/body.ts";
import type { Outgoing } from "../../backends/transformation.ts";
import type { Reply, RoutedExchange } from "../../exchange/exchange.ts";
import type { Upstream, UpstreamResponse } from "../../upstream/upstream.ts";
import type { Endpoint } from "../call/endpoint.ts";

export interface OperationContext {
  readonly endpoint: Endpoint;
  readonly exchange: RoutedExchange;
  /** The client's request after a transformation; undefined when there is none. */
  readonly out: Outgoing | undefined;
  /** The body to send. */
  readonly given: Body;
  readonly upstream: Upstream;
  readonly catalogs: BackendDeps["catalogs"];
}

export type Operation = (context: OperationContext) => Promise<Reply>;

/** Returns the response of a provider as it came. */
export function forwardResponse({ status, headers, body, tunnel }: UpstreamResponse, exchange: RoutedExchange): Reply {
  if (tunnel !== undefined) exchange.onDone(() => tunnel.stream.destroy());
  return { status, headers, body, tunnel, upstream: true };
}
