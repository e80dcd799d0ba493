/**
 * Reads from an HTTPRoute what decides about delegation: the routes that its rules delegate to, and the parents that it
 * names. `declare.ts` derives one outline for each route; it stays equal, and nothing is recomputed, when anything else
 * of the route is edited.
 */
import type { HTTPRoute } from "../../../../generated/types/gateway-api/httproute.ts";
import { GATEWAY_GROUP, nameKey } from "../../../api/refs.ts";
import { routeGroupKey } from "../../../ir/keys.ts";
import type { BackendReference } from "../../references/backend-refs.ts";

/** Selects every route of a namespace. */
export const EVERY = "*";

/** The routes that a backendRef of kind HTTPRoute names. */
export interface ChildSelector {
  readonly namespace: string;
  /** A name, "*" for every route of the namespace, or "label=value". */
  readonly selector: string;
  /** Key of the group in the IR. */
  readonly group: string;
}

export interface RouteOutline {
  /** Distinct selectors of all rules. */
  readonly children: readonly ChildSelector[];
  /** The parents of kind HTTPRoute that the route names, with their index in `parentRefs`. */
  readonly parents: readonly { readonly key: string; readonly at: number }[];
  /** The route names parents of any kind. */
  readonly hasParentRefs: boolean;
}

export function isDelegation({ group, kind }: BackendReference): boolean {
  return group === GATEWAY_GROUP && kind === "HTTPRoute";
}

/** Tells whether the name of a reference stands for all routes that it selects, rather than for one. */
export function selectsMany(selector: string): boolean {
  return selector === EVERY || selector.includes("=");
}

/** @param own namespace and name of the route that delegates */
export function childSelector(
  own: { readonly namespace: string; readonly name: string },
  { name: selector, namespace = own.namespace }: BackendReference,
): ChildSelector {
  return { namespace, selector, group: routeGroupKey(own, { namespace, selector }) };
}

export function outlineRoute({ metadata, spec: { rules = [], parentRefs = [] } }: HTTPRoute): RouteOutline {
  const own = { namespace: metadata.namespace ?? "", name: metadata.name };
  const children = rules.flatMap(({ backendRefs = [] }) =>
    backendRefs.filter(isDelegation).map((ref) => childSelector(own, ref)),
  );
  return {
    children: [...new Map(children.map((child) => [child.group, child])).values()],
    parents: parentRefs.flatMap(({ group = GATEWAY_GROUP, kind, namespace = own.namespace, name }, at) =>
      group === GATEWAY_GROUP && kind === "HTTPRoute" ? [{ key: nameKey({ namespace, name }), at }] : [],
    ),
    hasParentRefs: parentRefs.length > 0,
  };
}

/** Returns the text under which a selector is indexed. */
export function selectorText({ namespace, selector }: Pick<ChildSelector, "namespace" | "selector">): string {
  return `${namespace} ${selector}`;
}

/** Returns the texts of all selectors that select a route. */
export function selectorsOf({ metadata: { namespace = "", name, labels = {} } }: HTTPRoute): string[] {
  const own = [EVERY, name, ...Object.entries(labels).map(([label, value]) => `${label}=${value}`)];
  return own.map((selector) => selectorText({ namespace, selector }));
}
