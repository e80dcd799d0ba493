/**
 * Describes which Gateways need which resource: a route goes to the Gateways it is attached to, a backend and a Service
 * to those of the routes, policies and backends that name it. `../graph.ts` uses it. The values are small on purpose,
 * so that they stay equal, and nothing is recomputed, when a route is edited without moving.
 */
import type { Membership } from "../../lib/collections/groups.ts";

export interface RouteVisibility {
  readonly key: string;
  /** Gateways that accepted the route, sorted. */
  readonly gateways: readonly string[];
  /** Names of its rules, which a policy can name as `sectionName`. */
  readonly rules: readonly string[];
  readonly isEveryRuleNamed: boolean;
  readonly backends: readonly string[];
  /** The route has parents, and all of them belong to other controllers. */
  readonly foreign: boolean;
}

export interface BackendVisibility {
  readonly gateways: readonly string[];
  readonly uses: readonly string[];
}

/** Gateways, by the key of a Service port. */
export type ServiceVisibility = ReadonlyMap<string, readonly string[]>;

/** Returns group memberships: each used resource is a group, and the Gateways that need it are its members. */
export function gatewaysByUse(uses: readonly string[], gateways: readonly string[]): Membership[] {
  return uses.flatMap((group) => gateways.map((member) => ({ group, member })));
}

/** Merges lists of Gateways into one that is sorted and without duplicates. */
export function union(lists: readonly (readonly string[])[]): string[] {
  return [...new Set(lists.flat())].sort();
}
