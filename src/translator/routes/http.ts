/**
 * Translates one HTTPRoute into one resource; `../graph.ts` uses it. Matches, timeouts (GEP-1742) and retries
 * (GEP-1731) are translated here, everything else in http-rules.ts.
 */
import { create } from "@bufbuild/protobuf";
import type { HTTPRoute, HTTPRouteRetry, HTTPRouteRule } from "../../../generated/types/gateway-api/httproute.ts";
import {
  RetrySchema,
  WeightedBackendSchema,
  type HttpRule,
  type Retry,
  type WeightedBackend,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../api/conditions.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../lib/collections/groups.ts";
import { parseDuration } from "../../lib/time/duration.ts";
import type { ParentView } from "../shared/views.ts";
import type { Delegation } from "./delegation/translate.ts";
import { findModelConflict, findModelRuleError, isModelRule, modelsKeyOfRule } from "./model-rule.ts";
import { MAX_ATTEMPTS } from "../policies/retry.ts";
import { translateMatches } from "./matches.ts";
import { translateRoute, translateRule, type RouteContext, type RuleContext } from "./http-rules.ts";
import type { TranslatedRoute } from "./route.ts";

export interface HttpRouteContext extends RouteContext {
  readonly delegation: Delegation;
  /** Models that are attached to a listener itself, by listener. */
  readonly directModels: ReadableGroups;
}

export function translateHttpRoute(
  route: HTTPRoute,
  parents: readonly ParentView[],
  { directModels, ...context }: HttpRouteContext,
  read: Read,
): TranslatedRoute {
  return translateRoute(route, parents, { ...context, kind: "HTTPRoute", read }, (rule, ruleContext) =>
    translateHttpRule(rule, ruleContext, directModels),
  );
}

function translateHttpRule(rule: HTTPRouteRule, context: RuleContext, directModels: ReadableGroups): HttpRule {
  const message = translateRule(
    rule,
    context,
    (report) => translateMatches(rule.matches, report),
    isModelRule(rule) ? () => translateModelRule(rule, context, directModels) : undefined,
  );
  return Object.assign(message, {
    ...timeout("requestTimeoutMs", rule.timeouts?.request),
    ...timeout("backendRequestTimeoutMs", rule.timeouts?.backendRequest),
    ...(rule.retry === undefined ? {} : { retry: translateRetry(rule.retry) }),
  });
}

/**
 * Returns the Backend that stands for the models of the rule, or one that answers 500 when the rule cannot serve them.
 */
function translateModelRule(
  rule: HTTPRouteRule,
  context: RuleContext,
  directModels: ReadableGroups,
): WeightedBackend[] {
  const { namespace, name, at, parents, read } = context;
  const error = findModelRuleError(rule, namespace);
  const conflict = error === undefined ? findModelConflict(rule, parents, directModels, read) : undefined;
  if (error !== undefined) context.report({ path: "backendRefs", reason: Reason.InvalidKind, message: error });
  if (conflict !== undefined)
    context.report({ path: "backendRefs", reason: Reason.ModelRoutingConflict, message: conflict });
  const invalidReason = error ?? conflict ?? "";
  const backend = invalidReason === "" ? modelsKeyOfRule(namespace, name, at) : "";
  return [create(WeightedBackendSchema, { weight: 1, backend, invalidReason })];
}

/** Translates a retry; absent fields have the defaults of `traffic.retry`. Failed connections are always retried. */
function translateRetry({ attempts = 1, codes = [], backoff }: HTTPRouteRetry): Retry {
  const backoffMs = (backoff === undefined ? undefined : parseDuration(backoff)) ?? 0;
  return create(RetrySchema, { attempts: Math.min(attempts, MAX_ATTEMPTS), codes: [...codes], backoffMs });
}

/** Translates a timeout. Zero disables it (GEP-1742), like an absent one. */
function timeout<K extends string>(name: K, text: string | undefined): { [P in K]?: number } {
  const ms = text === undefined ? undefined : parseDuration(text);
  // A computed key widens to string, so the type has to be stated.
  return ms === undefined || ms === 0 ? {} : ({ [name]: ms } as { [P in K]?: number });
}
