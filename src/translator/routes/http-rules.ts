/**
 * Translates the parts that HTTPRoute and GRPCRoute have in common. `http.ts` and `grpc.ts` use it. One route object
 * becomes one resource, whatever it references.
 *
 * A rule that cannot be served as written stays in place and answers 500, so that its traffic does not fall through to
 * another rule. A backend that cannot be resolved affects only its share of the traffic.
 */
import { create } from "@bufbuild/protobuf";
import type { HTTPBackendRef, HTTPRouteFilter } from "../../../generated/types/gateway-api/httproute.ts";
import {
  HttpRouteSchema,
  HttpRuleSchema,
  WeightedBackendSchema,
  type HttpMatch,
  type HttpRoute,
  type HttpRule,
  type WeightedBackend,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../api/conditions.ts";
import { objectId, type KubeObject } from "../../api/object.ts";
import { createdAtMs, GATEWAY_GROUP, nameKey } from "../../api/refs.ts";
import { resourceOf } from "../../ir/encode.ts";
import { routeKey } from "../../ir/keys.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ParentView, ConditionError, RouteError } from "../shared/views.ts";
import { resolveBackend, type BackendCollections, type BackendReference } from "../references/backend-refs.ts";
import { irRef } from "../references/refs.ts";
import { isDelegation } from "./delegation/outline.ts";
import { translateDelegation, type Delegation } from "./delegation/translate.ts";
import { translateFilters, type FilterPlace } from "./filters.ts";
import type { Report } from "./matches.ts";
import { irParents, type TranslatedRoute } from "./route.ts";

export type RouteContext = BackendCollections;

export interface RuleContext extends RouteContext {
  readonly kind: "HTTPRoute" | "GRPCRoute";
  readonly namespace: string;
  /** Name of the route, index of the rule, and where the route is attached. */
  readonly name: string;
  readonly at: number;
  readonly parents: readonly ParentView[];
  /** Set for HTTPRoutes, which may delegate to others. */
  readonly delegation?: Delegation;
  readonly read: Read;
  report(error: RouteError): void;
}

/** The fields that rules of both kinds have. */
export interface PlainRule {
  readonly name?: string;
  readonly filters?: readonly HTTPRouteFilter[];
  readonly backendRefs?: readonly HTTPBackendRef[];
}

interface RouteObject<Rule> extends KubeObject {
  readonly spec: { readonly rules?: readonly Rule[]; readonly hostnames?: readonly string[] };
}

export function translateRoute<Rule>(
  route: RouteObject<Rule>,
  parents: readonly ParentView[],
  context: Pick<RuleContext, "kind" | "read" | "delegation" | keyof RouteContext>,
  translate: (rule: Rule | Record<string, never>, context: RuleContext) => HttpRule,
): TranslatedRoute {
  const id = objectId(route);
  const errors: RouteError[] = [];
  const rules = (route.spec.rules ?? [{}]).map((rule, at) =>
    translate(rule, {
      ...context,
      namespace: id.namespace,
      name: id.name,
      at,
      parents,
      report: ({ path, ...rest }) => errors.push({ path: `spec.rules[${at}].${path}`, ...rest }),
    }),
  );
  const message = create(HttpRouteSchema, {
    key: routeKey(context.kind, id.namespace, id.name),
    object: irRef(id),
    createdAtMs: BigInt(createdAtMs(route)),
    parents: irParents(parents),
    rules,
    ...membershipOf(nameKey(id), route.spec.hostnames, context),
  });
  return { resource: resourceOf("HttpRoute", message), backends: backendsOf(rules), errors };
}

/** Returns the groups of a route that others delegate to, and the hosts on which it serves there. */
function membershipOf(
  route: string,
  hostnames: readonly string[] = [],
  { delegation, read }: Pick<RuleContext, "delegation" | "read">,
): Pick<HttpRoute, "groups" | "hostnames"> {
  const { groups = [] } = (delegation && read.get(delegation.memberships, route)) ?? {};
  if (groups.length === 0) return { groups: [], hostnames: [] };
  return { groups: groups.map(({ group }) => group), hostnames: hostnames.map((host) => host.toLowerCase()) };
}

function backendsOf(rules: readonly HttpRule[]): string[] {
  const backends = new Set(
    rules.flatMap(({ backends: named, filters }) => [
      ...named.map(({ backend }) => backend),
      ...[...filters, ...named.flatMap((each) => each.filters)].flatMap(({ filter }) =>
        filter.case === "mirror" ? [filter.value.backend] : [],
      ),
    ]),
  );
  backends.delete("");
  return [...backends].sort();
}

/**
 * Translates one rule.
 * @param matches translates the matches of the rule and reports errors in them
 * @param backends translates its backendRefs
 */
export function translateRule(
  rule: PlainRule,
  context: RuleContext,
  matches: (report: Report) => HttpMatch[],
  backends: (context: RuleContext) => WeightedBackend[] = (here) => translateBackendRefs(rule, here),
): HttpRule {
  const messages: string[] = [];
  const matched = matches((path, message) => {
    messages.push(message);
    context.report({ path, reason: Reason.InvalidMatch, message });
  });
  const { filters, errors } = translateFilters(rule.filters, filterPlace("rule", context));
  for (const { harmless, ...error } of errors) {
    if (!harmless) messages.push(error.message);
    context.report(error);
  }
  return create(HttpRuleSchema, {
    name: rule.name ?? "",
    matches: matched,
    filters,
    backends: backends(context),
    invalidReason: messages.join("; "),
  });
}

function filterPlace(place: FilterPlace["place"], context: RuleContext): FilterPlace {
  return { place, resolve: (ref) => resolve(ref, context) };
}

function resolve(ref: BackendReference, context: RuleContext): string | ConditionError {
  const { kind, namespace, read } = context;
  return resolveBackend(ref, { group: GATEWAY_GROUP, kind, namespace }, context, read);
}

function translateBackendRefs({ backendRefs = [] }: PlainRule, context: RuleContext): WeightedBackend[] {
  return backendRefs.map((ref, at) => translateBackendRef(ref, `backendRefs[${at}]`, context));
}

function translateBackendRef(ref: HTTPBackendRef, path: string, context: RuleContext): WeightedBackend {
  const { delegation } = context;
  if (delegation !== undefined && isDelegation(ref))
    return translateDelegation(ref, { ...context, delegation, report: (error) => context.report({ path, ...error }) });
  const target = resolve(ref, context);
  const { filters, errors } = translateFilters(ref.filters, filterPlace("backendRef", context));
  for (const { harmless: _harmless, ...error } of errors) context.report({ ...error, path: `${path}.${error.path}` });
  if (typeof target !== "string") context.report({ path, ...target });
  const blocking = errors.filter(({ harmless }) => !harmless);
  const messages = [...(typeof target === "string" ? [] : [target]), ...blocking].map(({ message }) => message);
  return create(WeightedBackendSchema, {
    weight: ref.weight ?? 1,
    backend: messages.length === 0 && typeof target === "string" ? target : "",
    invalidReason: messages.join("; "),
    filters,
  });
}
