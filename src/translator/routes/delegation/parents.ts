/**
 * Adds the routes that delegate to a route to its parents, so that everything that depends on where a route is attached
 * (visibility, status, models) sees them as parents like any other. `declare.ts` uses it.
 */
import { Reason } from "../../../api/conditions.ts";
import { GATEWAY_GROUP } from "../../../api/refs.ts";
import type { Readable } from "../../../lib/collections/collection.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import type { ParentView } from "../../shared/views.ts";
import { describeRoute, type Memberships } from "./membership.ts";
import type { RouteOutline } from "./outline.ts";

export interface ParentContext {
  readonly outlines: Readable<RouteOutline>;
  readonly memberships: Readable<Memberships>;
  /** Listeners that each route is attached to by itself. */
  readonly attachments: Readable<readonly ParentView[]>;
}

/** Where the requests of a route that delegates come from. */
export interface Ancestry {
  /** Keys of the Gateways, sorted. */
  readonly gateways: readonly string[];
  /** The route is attached to Gateways of other controllers only. */
  readonly isForeign: boolean;
}

/** Walks up from a route through all routes that delegate to it. */
export function ancestryOf(key: string, { outlines, memberships, attachments }: ParentContext, read: Read): Ancestry {
  const gateways = new Set<string>();
  const routes = new Set([key]);
  let isForeign = false;
  let isOurs = false;
  for (const route of routes) {
    const attached = read.get(attachments, route) ?? [];
    for (const parent of attached)
      if (parent.error === undefined) for (const each of parent.gateways) gateways.add(each);
    const { groups = [] } = read.get(memberships, route) ?? {};
    for (const { parent } of groups) routes.add(parent);
    isOurs ||= attached.length > 0;
    // Parents of other controllers are left out of the attachments.
    isForeign ||= attached.length === 0 && isAttachedElsewhere(read.get(outlines, route));
  }
  return { gateways: [...gateways].sort(), isForeign: isForeign && !isOurs };
}

function isAttachedElsewhere(outline: RouteOutline | undefined): boolean {
  return outline?.hasParentRefs === true && outline.parents.length === 0;
}

/** Returns the parents of a route that are routes: those that delegate to it, and those that it names in vain. */
export function delegatingParents(
  key: string,
  context: ParentContext & { readonly ancestries: Readable<Ancestry> },
  read: Read,
): ParentView[] {
  const { groups = [] } = read.get(context.memberships, key) ?? {};
  const { parents: named = [] } = read.get(context.outlines, key) ?? {};
  const delegating = new Set(groups.map(({ parent }) => parent));
  return [...new Set([...delegating, ...named.map((parent) => parent.key)])].flatMap((parent): ParentView[] => {
    const outline = read.get(context.outlines, parent);
    const { gateways, isForeign } = read.get(context.ancestries, parent) ?? {
      gateways: [],
      isForeign: isAttachedElsewhere(outline) && (read.get(context.attachments, parent) ?? []).length === 0,
    };
    if (isForeign) return [];
    const at = named.find((each) => each.key === parent)?.at ?? -1;
    const [namespace = "", name = ""] = parent.split("/");
    const view = { ref: { group: GATEWAY_GROUP, kind: "HTTPRoute", namespace, name }, listeners: [], at };
    if (delegating.has(parent)) return [{ ...view, gateways, error: undefined }];
    const what = outline === undefined ? "not found" : "does not delegate to this route";
    const error = { reason: Reason.NoMatchingParent, message: `${describeRoute(parent)} ${what}` };
    return [{ ...view, gateways: [], error }];
  });
}
