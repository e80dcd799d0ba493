/** What an authorization service decided, in a form that can be applied to any request it holds for. */
import type { HeaderValueOption } from "../../../../generated/proto/envoy/config/core/v3/base_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { Exchange } from "../../pipeline/exchange.ts";

export type Verdict = Allowed | Denied;

export interface Allowed {
  readonly allowed: true;
  /** Changes the request as the service wants it to be. */
  readonly edit: (exchange: Exchange) => void;
  /** For the answer to the client. */
  readonly responseHeaders: readonly HeaderValueOption[];
  /** The root "extauthz". */
  readonly metadata: ReadonlyMap<string, unknown> | undefined;
}

export interface Denied {
  readonly allowed: false;
  /** The service's own words; undefined: our fixed text. */
  readonly reply: { readonly status: number; readonly headers: HeaderList; readonly body: Buffer } | undefined;
  readonly metadata: ReadonlyMap<string, unknown> | undefined;
}

/** What passes when the service cannot be asked and may be done without. */
export const UNASKED: Allowed = {
  allowed: true,
  edit: () => undefined,
  responseHeaders: [],
  metadata: undefined,
};
