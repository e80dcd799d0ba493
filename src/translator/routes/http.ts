/**
 * One HTTPRoute → one resource, whatever it names. A rule that cannot be served as written stays in place and answers
 * 500; a backend that cannot be resolved costs its share of the traffic and no more.
 */
import { create } from "@bufbuild/protobuf";
import type { HTTPBackendRef, HTTPRoute, HTTPRouteRule } from "../../../generated/types/gateway-api/httproute.ts";
import {
  HttpRouteSchema,
  HttpRuleSchema,
  WeightedBackendSchema,
  type HttpRule,
  type WeightedBackend,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../api/conditions.ts";
import { objectId } from "../../api/object.ts";
import { createdAtMs, GATEWAY_GROUP } from "../../api/refs.ts";
import { resourceOf } from "../../ir/encode.ts";
import { routeKey } from "../../ir/keys.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { parseDuration } from "../../lib/duration.ts";
import type { ParentView } from "../attach.ts";
import { resolveBackend, type BackendCollections } from "../backend-refs.ts";
import { irRef } from "../refs.ts";
import { translateFilters } from "./filters.ts";
import { translateMatches } from "./matches.ts";
import { irParents, type RouteFault, type TranslatedRoute } from "./route.ts";

export type RouteContext = BackendCollections;

interface RuleContext extends RouteContext {
  readonly namespace: string;
  readonly read: Read;
  fault(fault: RouteFault): void;
}

export function translateHttpRoute(
  route: HTTPRoute,
  parents: readonly ParentView[],
  context: RouteContext,
  read: Read,
): TranslatedRoute {
  const id = objectId(route);
  const faults: RouteFault[] = [];
  const rules = (route.spec.rules ?? [{}]).map((rule, at) =>
    translateRule(rule, {
      ...context,
      namespace: id.namespace,
      read,
      fault: ({ path, ...rest }) => faults.push({ path: `spec.rules[${at}].${path}`, ...rest }),
    }),
  );
  const message = create(HttpRouteSchema, {
    key: routeKey(id.kind, id.namespace, id.name),
    object: irRef(id),
    createdAtMs: BigInt(createdAtMs(route)),
    parents: irParents(parents),
    rules,
  });
  const backends = new Set(rules.flatMap((rule) => rule.backends.map(({ backend }) => backend)));
  backends.delete("");
  return { resource: resourceOf("HttpRoute", message), backends: [...backends].sort(), faults };
}

function translateRule(rule: HTTPRouteRule, context: RuleContext): HttpRule {
  const problems: string[] = [];
  const matches = translateMatches(rule.matches, (path, message) => {
    problems.push(message);
    context.fault({ path, reason: Reason.InvalidMatch, message });
  });
  const { filters, faults } = translateFilters(rule.filters, "rule");
  for (const fault of faults) {
    problems.push(fault.message);
    context.fault(fault);
  }
  return create(HttpRuleSchema, {
    name: rule.name ?? "",
    matches,
    filters,
    backends: (rule.backendRefs ?? []).map((ref, at) => translateBackendRef(ref, `backendRefs[${at}]`, context)),
    ...timeout("requestTimeoutMs", rule.timeouts?.request),
    ...timeout("backendRequestTimeoutMs", rule.timeouts?.backendRequest),
    invalidReason: problems.join("; "),
  });
}

/** Zero switches a timeout off (Gateway API), which is what an absent one means. */
function timeout<K extends string>(name: K, text: string | undefined): { [P in K]?: number } {
  const ms = text === undefined ? undefined : parseDuration(text);
  return ms === undefined || ms === 0 ? {} : ({ [name]: ms } as { [P in K]?: number }); // a computed key widens to string
}

function translateBackendRef(ref: HTTPBackendRef, path: string, context: RuleContext): WeightedBackend {
  const from = { group: GATEWAY_GROUP, kind: "HTTPRoute", namespace: context.namespace, needsGrant: true };
  const target = resolveBackend(ref, from, context, context.read);
  const { filters, faults } = translateFilters(ref.filters, "backendRef");
  for (const fault of faults) context.fault({ ...fault, path: `${path}.${fault.path}` });
  if (typeof target !== "string") context.fault({ path, ...target });
  const problems = [...(typeof target === "string" ? [] : [target]), ...faults].map(({ message }) => message);
  return create(WeightedBackendSchema, {
    weight: ref.weight ?? 1,
    backend: problems.length === 0 && typeof target === "string" ? target : "",
    invalidReason: problems.join("; "),
    filters,
  });
}
