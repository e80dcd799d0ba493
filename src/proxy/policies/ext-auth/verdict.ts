/** The verdict of an authorization service, in a form that applies to every request it is valid for. */
import type { HeaderValueOption } from "../../../../generated/proto/envoy/config/core/v3/base_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import type { PolicyDeps } from "../policy.ts";

/** The dependencies of a check. */
export type CheckDeps = Pick<PolicyDeps, "callout" | "expression" | "nowMs">;

export type Verdict = Allowed | Denied;

export interface Allowed {
  readonly allowed: true;
  /** Changes the request as the service requested. */
  readonly edit: (exchange: Exchange) => void;
  /** Added to the response to the client. */
  readonly responseHeaders: readonly HeaderValueOption[];
  /** Becomes the root "extauthz" of expressions. */
  readonly metadata: ReadonlyMap<string, unknown> | undefined;
}

export interface Denied {
  readonly allowed: false;
  /** The response of the service; undefined when the fixed text of the proxy is used. */
  readonly reply: { readonly status: number; readonly headers: HeaderList; readonly body: Buffer } | undefined;
  readonly metadata: ReadonlyMap<string, unknown> | undefined;
}

/** The verdict when the service cannot be asked and the policy fails open. */
export const UNASKED: Allowed = {
  allowed: true,
  edit: () => undefined,
  responseHeaders: [],
  metadata: undefined,
};
