/**
 * Declares which GwPolicies are overridden, that is, lose every unit that they set to other policies. Status reports
 * them in the condition `Overridden`, which names the winners. `../../graph.ts` uses it.
 *
 * Units are won as the data plane merges them (src/proxy/pipeline/select-units.ts): on one target by the oldest policy,
 * between targets by the most specific one, and by a policy with `override` against all more specific targets. Units
 * that are collected from all policies, such as rules of authorization, are lost only to an override. The filters of a
 * route are not a policy, so a policy that loses to them alone is not overridden.
 *
 *     policies ─▶ outlines ─▶ winners on each route ─▶ overridden policies
 *
 * Only outlines are read of other policies: an edit that changes values, and no unit, age or target, recomputes nothing
 * for them.
 */
import type { GwPolicy } from "../../../../generated/types/policy.ts";
import type { Collection, Readable } from "../../../lib/collections/collection.ts";
import type { Graph } from "../../../lib/collections/graph.ts";
import type { GatewayView } from "../../shared/views.ts";
import type { PolicyContent } from "../content.ts";
import type { TargetResolution } from "../target.ts";
import { isAtGateway, servingListeners, type AttachedRoutes } from "./attachment.ts";
import { findWinners, MAX_WINNERS, type WinnerLookup } from "./find-winners.ts";
import { outlinePolicy, type PolicyOutline } from "./outline.ts";
import { findRouteWinners, type RouteKindWinners } from "./route-winners.ts";

/** "namespace/name" of the winners, by the Gateway at which the policy loses everything. */
export type Overriding = ReadonlyMap<string, readonly string[]>;

export const NOT_OVERRIDDEN: Overriding = new Map();

export interface OverriddenContext {
  readonly contents: Readable<PolicyContent>;
  readonly targets: Readable<TargetResolution>;
  readonly gateways: Readable<GatewayView>;
  /** Every kind of route that can be attached to a listener. */
  readonly routes: readonly AttachedRoutes[];
  /** Those of them that policies can target, by name. */
  readonly policyRoutes: Readonly<Record<string, AttachedRoutes>>;
}

/** @returns no entry for a policy that has a unit at each of its Gateways */
export function declareOverridden(
  graph: Graph,
  policies: Collection<GwPolicy>,
  context: OverriddenContext,
): Collection<Overriding> {
  const outlines = graph.derive("policy outlines", policies, (key, policy, read) =>
    outlinePolicy(policy, read.get(context.contents, key), read.get(context.targets, key)),
  );
  const byTarget = outlines.index(({ targets }) => targets);
  const byUnit = outlines.index(({ targets, units }) =>
    targets.flatMap((target) => units.map((unit) => `${unit} ${target}`)),
  );
  const routeWinners = Object.entries(context.policyRoutes).map(
    ([kind, { attachments, visibility }]): RouteKindWinners => {
      const byRoute = graph.derive(`${kind} winners`, attachments, (key, parents, read) =>
        findRouteWinners(parents, read.get(visibility, key), byTarget, read),
      );
      const byListener = byRoute.groups(({ listeners, winners }, member) =>
        listeners.flatMap((listener) => [...winners.keys()].map((unit) => ({ group: `${listener} ${unit}`, member }))),
      );
      return { byRoute, byListener };
    },
  );
  return graph.derive("overridden policies", outlines, (key, outline, read): Overriding | undefined => {
    const gateways = read.get(context.targets, key)?.gateways ?? [];
    const lookup = { ...context, read, byUnit, routeWinners };
    const losing = gateways.flatMap((gateway) => {
      const winners = winnersAtGateway(gateway, outline, lookup);
      return winners === undefined ? [] : [[gateway, winners] as const];
    });
    return losing.length === 0 ? undefined : new Map(losing);
  });
}

/** @returns undefined when the policy has a unit anywhere at the Gateway, or sets none there */
function winnersAtGateway(
  gateway: string,
  outline: PolicyOutline,
  lookup: WinnerLookup,
): readonly string[] | undefined {
  const listeners = servingListeners(gateway, lookup);
  const targets = outline.targets.filter((target) => isAtGateway(target, gateway, listeners, lookup));
  if (targets.length === 0 || outline.units.length === 0) return undefined;
  const winners = new Set<string>();
  for (const target of targets) {
    for (const unit of outline.units) {
      const found = findWinners({ unit, target, outline, gateway, listeners }, lookup);
      if (found === undefined) return undefined;
      for (const name of found) winners.add(name);
    }
  }
  return [...winners].sort().slice(0, MAX_WINNERS);
}
