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
  type HttpRule,
  type WeightedBackend,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../api/conditions.ts";
import { objectId, type KubeObject } from "../../api/object.ts";
import { createdAtMs, GATEWAY_GROUP } from "../../api/refs.ts";
import { resourceOf } from "../../ir/encode.ts";
import { routeKey } from "../../ir/keys.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ParentView, Fault, RouteFault } from "../shared/views.ts";
import { resolveBackend, type BackendCollections, type BackendReference } from "../references/backend-refs.ts";
import { irRef } from "../references/refs.ts";
import { translateFilters, type FilterPlace } from "./filters.ts";
import type { Report } from "./matches.ts";
import { irParents, type TranslatedRoute } from "./route.ts";

export type RouteContext = BackendCollections;

export interface RuleContext extends RouteContext {
  readonly kind: "HTTPRoute" | "GRPCRoute";
  readonly namespace: string;
  readonly read: Read;
  fault(fault: RouteFault): void;
}

/** The fields that rules of both kinds have. */
export interface PlainRule {
  readonly name?: string;
  readonly filters?: readonly HTTPRouteFilter[];
  readonly backendRefs?: readonly HTTPBackendRef[];
}

interface RouteObject<Rule> extends KubeObject {
  readonly spec: { readonly rules?: readonly Rule[] };
}

export function translateRoute<Rule>(
  route: RouteObject<Rule>,
  parents: readonly ParentView[],
  context: Pick<RuleContext, "kind" | "read" | keyof RouteContext>,
  translate: (rule: Rule | Record<string, never>, context: RuleContext) => HttpRule,
): TranslatedRoute {
  const id = objectId(route);
  const faults: RouteFault[] = [];
  const rules = (route.spec.rules ?? [{}]).map((rule, at) =>
    translate(rule, {
      ...context,
      namespace: id.namespace,
      fault: ({ path, ...rest }) => faults.push({ path: `spec.rules[${at}].${path}`, ...rest }),
    }),
  );
  const message = create(HttpRouteSchema, {
    key: routeKey(context.kind, id.namespace, id.name),
    object: irRef(id),
    createdAtMs: BigInt(createdAtMs(route)),
    parents: irParents(parents),
    rules,
  });
  return { resource: resourceOf("HttpRoute", message), backends: backendsOf(rules), faults };
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

/** Translates one rule. @param matches translates the matches of the rule and reports faults in them */
export function translateRule(
  rule: PlainRule,
  context: RuleContext,
  matches: (report: Report) => HttpMatch[],
): HttpRule {
  const problems: string[] = [];
  const matched = matches((path, message) => {
    problems.push(message);
    context.fault({ path, reason: Reason.InvalidMatch, message });
  });
  const { filters, faults } = translateFilters(rule.filters, filterPlace("rule", context));
  for (const { harmless, ...fault } of faults) {
    if (!harmless) problems.push(fault.message);
    context.fault(fault);
  }
  return create(HttpRuleSchema, {
    name: rule.name ?? "",
    matches: matched,
    filters,
    backends: (rule.backendRefs ?? []).map((ref, at) => translateBackendRef(ref, `backendRefs[${at}]`, context)),
    invalidReason: problems.join("; "),
  });
}

function filterPlace(place: FilterPlace["place"], context: RuleContext): FilterPlace {
  return { place, resolve: (ref) => resolve(ref, context) };
}

function resolve(ref: BackendReference, context: RuleContext): string | Fault {
  const { kind, namespace, read } = context;
  return resolveBackend(ref, { group: GATEWAY_GROUP, kind, namespace }, context, read);
}

function translateBackendRef(ref: HTTPBackendRef, path: string, context: RuleContext): WeightedBackend {
  const target = resolve(ref, context);
  const { filters, faults } = translateFilters(ref.filters, filterPlace("backendRef", context));
  for (const { harmless: _harmless, ...fault } of faults) context.fault({ ...fault, path: `${path}.${fault.path}` });
  if (typeof target !== "string") context.fault({ path, ...target });
  const blocking = faults.filter(({ harmless }) => !harmless);
  const problems = [...(typeof target === "string" ? [] : [target]), ...blocking].map(({ message }) => message);
  return create(WeightedBackendSchema, {
    weight: ref.weight ?? 1,
    backend: problems.length === 0 && typeof target === "string" ? target : "",
    invalidReason: problems.join("; "),
    filters,
  });
}
