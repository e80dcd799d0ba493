/**
 * Translates one HTTPRoute into one resource; `../graph.ts` uses it. Matches, timeouts (GEP-1742) and retries
 * (GEP-1731) are translated here, everything else in http-rules.ts.
 */
import { create } from "@bufbuild/protobuf";
import type { HTTPRoute, HTTPRouteRetry, HTTPRouteRule } from "../../../generated/types/gateway-api/httproute.ts";
import { RetrySchema, type HttpRule, type Retry } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { parseDuration } from "../../lib/time/duration.ts";
import type { ParentView } from "../shared/views.ts";
import { MOST_ATTEMPTS } from "../policies/retry.ts";
import { translateMatches } from "./matches.ts";
import { translateRoute, translateRule, type RouteContext, type RuleContext } from "./http-rules.ts";
import type { TranslatedRoute } from "./route.ts";

export function translateHttpRoute(
  route: HTTPRoute,
  parents: readonly ParentView[],
  context: RouteContext,
  read: Read,
): TranslatedRoute {
  return translateRoute(route, parents, { ...context, kind: "HTTPRoute", read }, translateHttpRule);
}

function translateHttpRule(rule: HTTPRouteRule, context: RuleContext): HttpRule {
  const message = translateRule(rule, context, (report) => translateMatches(rule.matches, report));
  return Object.assign(message, {
    ...timeout("requestTimeoutMs", rule.timeouts?.request),
    ...timeout("backendRequestTimeoutMs", rule.timeouts?.backendRequest),
    ...(rule.retry === undefined ? {} : { retry: translateRetry(rule.retry) }),
  });
}

/** Translates a retry; absent fields have the defaults of `traffic.retry`. Failed connections are always retried. */
function translateRetry({ attempts = 1, codes = [], backoff }: HTTPRouteRetry): Retry {
  const backoffMs = (backoff === undefined ? undefined : parseDuration(backoff)) ?? 0;
  return create(RetrySchema, { attempts: Math.min(attempts, MOST_ATTEMPTS), codes: [...codes], backoffMs });
}

/** Translates a timeout. Zero disables it (GEP-1742), like an absent one. */
function timeout<K extends string>(name: K, text: string | undefined): { [P in K]?: number } {
  const ms = text === undefined ? undefined : parseDuration(text);
  // A computed key widens to string, so the type has to be stated.
  return ms === undefined || ms === 0 ? {} : ({ [name]: ms } as { [P in K]?: number });
}
