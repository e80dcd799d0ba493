/**
 * The shape of a rule that serves models: an HTTPRoute rule whose only backend is `{group: gwproxy.dev, kind: GwModel,
 * name: "*"}`. HTTPRoutes and the models that name them as parents use it.
 */
import type { HTTPRouteRule } from "../../../generated/types/gateway-api/httproute.ts";
import { GWPROXY_GROUP } from "../../api/refs.ts";
import { modelsKey, routeKey } from "../../ir/keys.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../lib/collections/groups.ts";
import type { ParentView } from "../shared/views.ts";

/** Names every model that has the rule as a parent. */
const EVERY = "*";

/** Filters that change the path, from which the model router reads formats and names of models. */
const REWRITES: ReadonlySet<string> = new Set(["URLRewrite", "RequestRedirect"]);

export function isModelRule({ backendRefs = [] }: HTTPRouteRule): boolean {
  return backendRefs.some(({ group = "", kind = "Service" }) => group === GWPROXY_GROUP && kind === "GwModel");
}

/** Explains why a rule that names models cannot serve them. @param namespace of the route */
export function findModelRuleError(
  { backendRefs = [], matches = [], filters = [] }: HTTPRouteRule,
  namespace: string,
): string | undefined {
  const [ref, ...others] = backendRefs;
  if (ref === undefined || others.length > 0) return "a rule that serves models has exactly one backendRef";
  if (ref.name !== EVERY) return `a backendRef to models names "${EVERY}"; models name the route in their parentRefs`;
  if (ref.port !== undefined) return "a backendRef to models has no port";
  if ((ref.weight ?? 1) !== 1) return "a backendRef to models has the weight 1";
  if ((ref.filters ?? []).length > 0) return "a backendRef to models has no filters";
  if ((ref.namespace ?? namespace) !== namespace) return "a backendRef to models stays in the namespace of the route";
  if (matches.some(({ path }) => (path?.type ?? "PathPrefix") !== "PathPrefix"))
    return "a rule that serves models matches paths by PathPrefix";
  const rewrite = filters.find(({ type }) => REWRITES.has(type));
  return rewrite === undefined ? undefined : `a rule that serves models has no filter ${rewrite.type}`;
}

/** Whether the rule takes every path, so that models of the listener itself could never be reached. */
export function matchesRoot({ matches = [] }: HTTPRouteRule): boolean {
  return matches.length === 0 || matches.some(({ path }) => (path?.value ?? "/") === "/");
}

/**
 * Explains why a rule cannot serve models on the listeners of its route; undefined when it can.
 * @param directModels models that are attached to a listener itself
 */
export function findModelConflict(
  rule: HTTPRouteRule,
  attached: readonly ParentView[],
  directModels: ReadableGroups,
  read: Read,
): string | undefined {
  if (!matchesRoot(rule)) return undefined;
  const taken = attached.flatMap(({ listeners }) => listeners).find(({ key }) => read.size(directModels, key) > 0);
  return taken && `the rule takes every path, and listener ${taken.name} has models of its own`;
}

/** Returns the key of the Backend that stands for the models of a rule. @param at index of the rule */
export function modelsKeyOfRule(namespace: string, name: string, at: number): string {
  return modelsKey(`${routeKey("HTTPRoute", namespace, name)}/${at}`);
}
