/**
 * Finds the policies that win one unit from another policy on one of its targets. `declare.ts` asks for each unit and
 * target of each policy.
 *
 * A policy loses a unit in three ways, which are tried in this order:
 * 1. to an older policy on the same target,
 * 2. to policies with `override` on less specific targets, when one of them lies on every path to the target,
 * 3. to policies on more specific targets, when these cover the whole target.
 */
import type { ReadableIndex } from "../../../lib/collections/collection.ts";
import {
  listenersOfRoute,
  locateRoute,
  routesAbove,
  type AttachedRoutes,
  type AttachmentLookup,
} from "./attachment.ts";
import { isCollected, sortOldestFirst, type PolicyOutline } from "./outline.ts";
import type { RouteKindWinners } from "./route-winners.ts";

/** Limit on the names in one message. */
export const MAX_WINNERS = 8;

export interface WinnerLookup extends AttachmentLookup {
  /** Every kind of route that can be attached to a listener. */
  readonly routes: readonly AttachedRoutes[];
  /** Policies by "unit target". */
  readonly byUnit: ReadableIndex<PolicyOutline>;
  readonly routeWinners: readonly RouteKindWinners[];
}

/** One unit of a policy on one of its targets, at one Gateway. */
interface ContestedUnit {
  readonly unit: string;
  readonly target: string;
  readonly outline: PolicyOutline;
  readonly gateway: string;
  /** All listeners that serve at the Gateway. */
  readonly listeners: readonly string[];
}

/** @returns undefined when the policy has the unit in some part of the target */
export function findWinners(contested: ContestedUnit, lookup: WinnerLookup): readonly string[] | undefined {
  const { unit, target, outline } = contested;
  const [oldest] = sortOldestFirst(lookup.read.byIndex(lookup.byUnit, `${unit} ${target}`));
  if (!isCollected(unit) && oldest !== undefined && oldest.key !== outline.key) return [oldest.name];
  const above = overridesAbove(contested, lookup);
  if (above !== undefined) return above;
  return outline.override || isCollected(unit) ? undefined : winnersBelow(contested, lookup);
}

function overridesAbove(
  { unit, target, gateway, listeners }: ContestedUnit,
  lookup: WinnerLookup,
): readonly string[] | undefined {
  const [kind, name = ""] = target.split(" ");
  if (kind !== "listener" && kind !== "route") return undefined;
  const ofGateway = overrideOn(unit, `gateway ${gateway}`, lookup);
  if (ofGateway !== undefined) return [ofGateway];
  if (kind === "listener") return undefined;
  const [route, rule] = name.split("#");
  const ofRoute = rule === undefined ? undefined : overrideOn(unit, `route ${route}`, lookup);
  if (ofRoute !== undefined) return [ofRoute];
  return allDefined(overridesOnPaths(name, { unit, gateway, listeners }, lookup));
}

/**
 * Returns the nearest override above a route on each path that leads to it, from a listener or through routes that
 * delegate; undefined for a path without one. Each route is visited once, so that a cycle of delegations ends.
 */
function overridesOnPaths(
  route: string,
  place: Pick<ContestedUnit, "unit" | "gateway" | "listeners">,
  lookup: WinnerLookup,
  seen: Set<string> = new Set([route]),
): (string | undefined)[] {
  const { unit, gateway, listeners } = place;
  const ofListeners = listenersOfRoute(route, listeners, lookup).map((key) =>
    overrideOn(unit, `listener ${key}`, lookup),
  );
  const ofRoutes = routesAbove(route, gateway, lookup).flatMap((above) => {
    if (seen.has(above)) return [];
    seen.add(above);
    const override = overrideOn(unit, `route ${above}`, lookup);
    return override === undefined ? overridesOnPaths(above, place, lookup, seen) : [override];
  });
  return [...ofListeners, ...ofRoutes];
}

/** Returns the policy on a target that keeps the unit from more specific targets. */
function overrideOn(unit: string, target: string, { read, byUnit }: WinnerLookup): string | undefined {
  const policies = sortOldestFirst(read.byIndex(byUnit, `${unit} ${target}`));
  // Only the policy that has the unit can lock it; a collected unit can be locked by each policy that sets it.
  return (isCollected(unit) ? policies : policies.slice(0, 1)).find(({ override }) => override)?.name;
}

function winnersBelow({ unit, target, listeners }: ContestedUnit, lookup: WinnerLookup): readonly string[] | undefined {
  const [kind, name = ""] = target.split(" ");
  if (kind === "gateway")
    return allDefined(listeners.map((listener) => winnersAtListener(unit, listener, lookup)))?.flat();
  if (kind === "listener") return winnersOnRoutes(unit, name, lookup);
  if (kind !== "route" || name.includes("#")) return undefined;
  return winnersOnRules(unit, name, lookup);
}

function winnersAtListener(unit: string, listener: string, lookup: WinnerLookup): readonly string[] | undefined {
  const [oldest] = sortOldestFirst(lookup.read.byIndex(lookup.byUnit, `${unit} listener ${listener}`));
  return oldest === undefined ? winnersOnRoutes(unit, listener, lookup) : [oldest.name];
}

/**
 * Compares counts before it collects names: when one of ten thousand routes of a listener is not covered, the others
 * are not read.
 */
function winnersOnRoutes(unit: string, listener: string, lookup: WinnerLookup): readonly string[] | undefined {
  const { read, routes, routeWinners } = lookup;
  // A PreRouting unit runs before a route is chosen, so no policy of a route can replace it.
  if (unit.startsWith("PreRouting ")) return undefined;
  const group = `${listener} ${unit}`;
  const attached = routes.reduce((sum, { byListener }) => sum + read.size(byListener, listener), 0);
  const covered = routeWinners.reduce((sum, { byListener }) => sum + read.size(byListener, group), 0);
  if (attached === 0 || covered < attached) return undefined;
  return routeWinners.flatMap(({ byRoute, byListener }) =>
    read
      .members(byListener, group)
      .slice(0, MAX_WINNERS)
      .flatMap((route) => read.get(byRoute, route)?.winners.get(unit) ?? []),
  );
}

function winnersOnRules(unit: string, route: string, lookup: WinnerLookup): readonly string[] | undefined {
  const { read, byUnit } = lookup;
  const { kind, key } = locateRoute(route, lookup);
  const view = kind === undefined ? undefined : read.get(kind.visibility, key);
  if (view?.isEveryRuleNamed !== true) return undefined;
  return allDefined(
    view.rules.map((rule) => sortOldestFirst(read.byIndex(byUnit, `${unit} route ${route}#${rule}`))[0]?.name),
  );
}

/** @returns undefined when a value is missing, or when there are none */
function allDefined<T>(values: readonly (T | undefined)[]): readonly T[] | undefined {
  const present = values.filter((value) => value !== undefined);
  return present.length === values.length && present.length > 0 ? present : undefined;
}
