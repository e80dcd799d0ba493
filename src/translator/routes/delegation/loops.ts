/**
 * Finds delegations that lead back to a route, for the status of the route that closes the loop. `declare.ts` uses it.
 * The data plane refuses only the requests that would go round (`src/proxy/router/delegation.ts`): other rules of the
 * same routes serve, so that no resource depends on what is found here.
 */
import type { Readable } from "../../../lib/collections/collection.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../../lib/collections/groups.ts";
import type { ParentView } from "../../shared/views.ts";
import type { Memberships } from "./membership.ts";
import type { RouteOutline } from "./outline.ts";

export interface LoopContext {
  readonly outlines: Readable<RouteOutline>;
  readonly memberships: Readable<Memberships>;
  /** Members that delegate themselves, by group. Others cannot be part of a loop. */
  readonly delegatingMembers: ReadableGroups;
  /** Listeners that each route is attached to by itself. */
  readonly attachments: Readable<readonly ParentView[]>;
}

/** The ways back, such as ["a/one", "b/two", "a/one"], by the group through which the loop closes. */
export type Loops = Readonly<Record<string, readonly string[]>>;

/** @returns undefined when no delegation of the route closes a loop */
export function findLoops(
  key: string,
  { children }: RouteOutline,
  context: LoopContext,
  read: Read,
): Loops | undefined {
  const loops: Record<string, readonly string[]> = {};
  for (const { group } of children) {
    const way = read
      .members(context.delegatingMembers, group)
      .filter((member) => isEntered(member, key, context, read))
      .map((member) => wayBetween(member, key, context, read))
      .find((found) => found !== undefined);
    if (way !== undefined) loops[group] = [key, ...way];
  }
  return Object.keys(loops).length === 0 ? undefined : loops;
}

/** Returns the routes on a shortest way down from one route to another, or undefined when there is none. */
function wayBetween(
  from: string,
  to: string,
  { outlines, delegatingMembers }: LoopContext,
  read: Read,
): string[] | undefined {
  const ways = new Map([[from, [from]]]);
  for (const [key, way] of ways) {
    if (key === to) return way;
    for (const { group } of read.get(outlines, key)?.children ?? [])
      for (const member of read.members(delegatingMembers, group))
        if (!ways.has(member)) ways.set(member, [...way, member]);
  }
  return undefined;
}

/**
 * Tells whether requests come to a route before they come to another one. A loop closes where it returns to the route
 * through which it was entered; one that no listener leads to closes at each of its routes.
 */
function isEntered(key: string, other: string, context: LoopContext, read: Read): boolean {
  return key === other || isServed(key, other, context, read) || !isServed(other, undefined, context, read);
}

/** Tells whether a listener leads to a route without passing through another one. */
function isServed(
  key: string,
  avoided: string | undefined,
  { memberships, attachments }: LoopContext,
  read: Read,
): boolean {
  const routes = new Set([key]);
  for (const route of routes) {
    if ((read.get(attachments, route) ?? []).some(({ error }) => error === undefined)) return true;
    for (const { parent } of read.get(memberships, route)?.groups ?? []) if (parent !== avoided) routes.add(parent);
  }
  return false;
}
