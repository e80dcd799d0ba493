/**
 * Translates a backendRef of kind HTTPRoute, by which a rule delegates, into a group of the IR. `../http-rules.ts` uses
 * it. A name that leads to no route answers 500 for its share of the traffic; "*" and "label=value" may select nothing
 * yet, and requests that no member matches are answered 404.
 */
import { create } from "@bufbuild/protobuf";
import type { HTTPBackendRef, HTTPRoute } from "../../../../generated/types/gateway-api/httproute.ts";
import { WeightedBackendSchema, type WeightedBackend } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../../api/conditions.ts";
import { nameKey } from "../../../api/refs.ts";
import type { Readable } from "../../../lib/collections/collection.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../../lib/collections/groups.ts";
import type { ConditionError } from "../../shared/views.ts";
import type { Loops } from "./loops.ts";
import { describeRoute, isDelegationGranted, type GrantContext, type Memberships } from "./membership.ts";
import { childSelector, EVERY, selectsMany, type ChildSelector } from "./outline.ts";

/** What the translation of a route reads about delegation. */
export interface Delegation extends GrantContext {
  readonly routes: Readable<HTTPRoute>;
  readonly memberships: Readable<Memberships>;
  /** Members of each group. */
  readonly members: ReadableGroups;
  readonly loops: Readable<Loops>;
}

export interface DelegatingRule {
  /** Namespace and name of the route. */
  readonly namespace: string;
  readonly name: string;
  readonly delegation: Delegation;
  readonly read: Read;
  report(error: ConditionError): void;
}

export function translateDelegation(ref: HTTPBackendRef, rule: DelegatingRule): WeightedBackend {
  const child = childSelector(rule, ref);
  const error = findRefError(ref) ?? findAbsence(child, rule);
  const loop = rule.read.get(rule.delegation.loops, nameKey(rule))?.[child.group];
  if (error !== undefined) rule.report(error);
  else if (loop !== undefined)
    rule.report({
      reason: Reason.RefNotPermitted,
      message: `delegation leads back: ${loop.join(" → ")}; requests on this way are answered 500`,
    });
  return create(WeightedBackendSchema, {
    weight: ref.weight ?? 1,
    ...(error === undefined ? { group: child.group } : { invalidReason: error.message }),
  });
}

function findRefError({ name, filters = [] }: HTTPBackendRef): ConditionError | undefined {
  if (filters.length > 0)
    return { reason: Reason.IncompatibleFilters, message: "a backendRef to HTTPRoutes has no filters" };
  const parts = name.split("=");
  if (parts.length > 2 || parts[0] === "")
    return { reason: Reason.UnsupportedValue, message: `"${name}" is not a label in the form "label=value"` };
  return undefined;
}

/** Explains why a reference leads to no route; undefined when it does, or when it selects routes that may come. */
function findAbsence(
  { namespace, selector, group }: ChildSelector,
  { delegation, read, ...own }: DelegatingRule,
): ConditionError | undefined {
  if (read.size(delegation.members, group) > 0) return undefined;
  const isMany = selectsMany(selector);
  const target = { namespace, name: selector };
  if (!isDelegationGranted(nameKey(own), { namespace, name: isMany ? EVERY : selector }, delegation, read))
    return {
      reason: Reason.RefNotPermitted,
      message: `${describeRoute(target)}: not permitted by any ReferenceGrant in namespace ${namespace} for HTTPRoute from ${own.namespace}, nor by parentRefs of the route`,
    };
  if (isMany) return undefined;
  if (read.get(delegation.routes, nameKey(target)) === undefined)
    return { reason: Reason.BackendNotFound, message: `${describeRoute(target)} not found` };
  return {
    reason: Reason.RefNotPermitted,
    message: `${describeRoute(target)} names other parents in its parentRefs`,
  };
}
