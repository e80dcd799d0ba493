/** Begins the span of one call to a backend when its request is traced; the call carries the span as its parent. */
import type { Attribute } from "../../../telemetry/attributes.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { OutboundKind, OutboundSubtype } from "./outbound.ts";
import { pathOf } from "../../../lib/network/request-target.ts";
import type { OutboundSpan } from "./outbound-span.ts";
import type { RequestTrace } from "./request-trace.ts";

/** The head of a request to a backend. */
export interface CallHead {
  readonly method: string;
  /** Includes the query, which may hold a credential and is left out of the span. */
  readonly path: string;
  /** Includes Host. */
  readonly headers: HeaderList;
}

/**
 * @param trace of the exchange
 * @param about its `name` becomes the name of the span
 */
export function beginCallSpan(
  trace: RequestTrace,
  { outboundKind: kind }: { readonly outboundKind: Exclude<OutboundKind, "Policy"> },
  { method, path, headers }: CallHead,
  about: {
    readonly subtype: OutboundSubtype;
    readonly name: string;
    readonly attributes?: readonly Attribute[];
  },
): OutboundSpan | undefined {
  const { subtype, name, attributes = [] } = about;
  const head: Attribute[] = [
    ["http.method", method],
    ["http.host", headers.get("host") ?? ""],
    ["http.path", pathOf(path)],
    ...attributes,
  ];
  return trace.begin({ kind, subtype, name, attributes: head }, headers);
}
