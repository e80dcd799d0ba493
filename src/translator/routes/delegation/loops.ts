/**
 * Finds cycles of delegation, for the status of the route that closes the loop. `declare.ts` uses it. No resource
 * depends on them: the data plane itself refuses requests that follow a cycle (`src/proxy/router/delegation.ts`), and
 * the other rules of the same routes serve.
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
  /** Members that delegate as well, by group. Only they can be part of a loop. */
  readonly delegatingMembers: ReadableGroups;
  /** Listeners that each route is attached to by itself. */
  readonly attachments: Readable<readonly ParentView[]>;
}

/** Loops such as ["a/one", "b/two", "a/one"], by the group through which they close. */
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
    const chain = read
      .members(context.delegatingMembers, group)
      .filter((member) => isEntered(member, key, context, read))
      .map((member) => chainBetween(member, key, context, read))
      .find((found) => found !== undefined);
    if (chain !== undefined) loops[group] = [key, ...chain];
  }
  return Object.keys(loops).length === 0 ? undefined : loops;
}

/** Returns a shortest chain of delegation from one route to another (breadth-first search); undefined without one. */
function chainBetween(
  from: string,
  to: string,
  { outlines, delegatingMembers }: LoopContext,
  read: Read,
): string[] | undefined {
  const chains = new Map([[from, [from]]]);
  for (const [key, chain] of chains) {
    if (key === to) return chain;
    for (const { group } of read.get(outlines, key)?.children ?? [])
      for (const member of read.members(delegatingMembers, group))
        if (!chains.has(member)) chains.set(member, [...chain, member]);
  }
  return undefined;
}

/**
 * Tells whether requests can reach a route without passing through another one. A loop closes at the route through
 * which requests enter it; a loop that no listener leads to closes at each of its routes.
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
