/**
 * Computes which policies win units on a whole route: those that target the route, and those that together target each
 * of its rules. `declare.ts` derives one result for each route, which `find-winners.ts` counts by listener.
 */
import type { Collection, ReadableIndex } from "../../../lib/collections/collection.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../../lib/collections/groups.ts";
import type { RouteVisibility } from "../../references/visibility.ts";
import type { ParentView } from "../../shared/views.ts";
import { isCollected, sortOldestFirst, type PolicyOutline } from "./outline.ts";

export interface RouteWinners {
  /** Keys of the listeners that the route is attached to. */
  readonly listeners: readonly string[];
  /** "namespace/name" of the winners, by unit. */
  readonly winners: ReadonlyMap<string, readonly string[]>;
}

/** The winners on all routes of one kind. */
export interface RouteKindWinners {
  readonly byRoute: Collection<RouteWinners>;
  /** Routes on which a unit is won, by "listener unit". */
  readonly byListener: ReadableGroups;
}

/** @returns undefined when no unit is won on the whole route */
export function findRouteWinners(
  parents: readonly ParentView[],
  route: RouteVisibility | undefined,
  byTarget: ReadableIndex<PolicyOutline>,
  read: Read,
): RouteWinners | undefined {
  if (route === undefined) return undefined;
  const onRoute = oldestByUnit(`route ${route.key}`, byTarget, read);
  const winners = new Map([...onRoute].map(([unit, name]) => [unit, [name]]));
  // No policy can target a rule without a name, so the rules win nothing unless all of them have one.
  const rules = route.isEveryRuleNamed
    ? [...new Set(route.rules)].map((rule) => oldestByUnit(`route ${route.key}#${rule}`, byTarget, read))
    : [];
  const [first = new Map<string, string>(), ...others] = rules;
  for (const [unit, name] of first) {
    const names = others.map((other) => other.get(unit));
    if (!winners.has(unit) && names.every((other) => other !== undefined)) winners.set(unit, [name, ...names]);
  }
  if (winners.size === 0) return undefined;
  return { listeners: parents.flatMap(({ listeners }) => listeners.map(({ key }) => key)), winners };
}

/** Returns the oldest policy on a target for each unit that only one policy can have. */
function oldestByUnit(target: string, byTarget: ReadableIndex<PolicyOutline>, read: Read): Map<string, string> {
  const oldest = new Map<string, string>();
  for (const { name, units } of sortOldestFirst(read.byIndex(byTarget, target)))
    for (const unit of units) if (!oldest.has(unit) && !isCollected(unit)) oldest.set(unit, name);
  return oldest;
}
