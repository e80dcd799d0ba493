/**
 * Resolves hostname conflicts between HTTPRoutes and GRPCRoutes, which must not share a hostname on a listener (Gateway
 * API, GRPCRoute `hostnames`). `../graph.ts` uses it.
 *
 *     route ─▶ candidates (attach.ts) ─▶ conflicts of each Gateway ─▶ attachments
 *
 * Candidates are visited by age, then by name, and each one serves unless a serving route of the other kind holds one
 * of its hostnames. A route that lost its conflict therefore does not displace a third route.
 */
import { Reason } from "../../api/conditions.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Collection, Readable } from "../../lib/collections/collection.ts";
import type { Graph, Input, Read } from "../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../lib/collections/groups.ts";
import { attachRoute, type AttachableRoute, type AttachContext } from "./attach.ts";
import type { AttachedListener, ParentView, GatewayView } from "../shared/views.ts";
import { intersectHostname } from "./hostname.ts";
import { compare } from "../../lib/compare.ts";

/** The routes of one kind, and the listeners they would attach to without conflicts. */
export interface AttachmentCandidates {
  readonly kind: string;
  readonly objects: Readable<KubeObject>;
  readonly parents: Collection<readonly ParentView[]>;
  readonly byListener: ReadableGroups;
}

export function declareAttachmentCandidates<R extends AttachableRoute & KubeObject>(
  graph: Graph,
  { kind, input, attach }: { readonly kind: string; readonly input: Input<R>; readonly attach: AttachContext },
): AttachmentCandidates {
  const parents = graph.derive(`${kind} candidates`, input, (_key, route, read): readonly ParentView[] =>
    attachRoute(route, kind, attach, read),
  );
  return { kind, objects: input, parents, byListener: groupByListener(parents) };
}

/** Groups routes by the listeners they attach to. */
export function groupByListener(attachments: Collection<readonly ParentView[]>): ReadableGroups {
  return attachments.groups((parents, member) =>
    parents.flatMap(({ listeners }) => listeners.map(({ key: group }) => ({ group, member }))),
  );
}

/** The routes that lost a conflict, by `conflictKey`, with the route that won it, such as "GRPCRoute shop/cart". */
export type HostnameConflicts = Readonly<Record<string, string>>;

function conflictKey(listener: string, kind: string, route: string): string {
  return `${listener} ${kind} ${route}`;
}

/** @returns the lost conflicts of each Gateway; no entry for a Gateway without any */
export function declareHostnameConflicts(
  graph: Graph,
  gateways: Collection<GatewayView>,
  [http, grpc]: readonly [AttachmentCandidates, AttachmentCandidates],
): Collection<HostnameConflicts> {
  return graph.derive("rival routes", gateways, (_key, { listeners, sets }, read): HostnameConflicts | undefined => {
    const conflicts: Record<string, string> = {};
    for (const { key } of [...listeners, ...sets.flatMap((set) => set.listeners)]) {
      // Most Gateways have no GRPCRoute. Returning early keeps their HTTPRoutes from becoming reads of this derivation.
      if (read.size(grpc.byListener, key) === 0 || read.size(http.byListener, key) === 0) continue;
      resolveConflicts(key, [...contendersOf(http, key, read), ...contendersOf(grpc, key, read)], conflicts);
    }
    return Object.keys(conflicts).length === 0 ? undefined : conflicts;
  });
}

/** Declares where the routes attach once conflicts are resolved. */
export function declareAttachments(
  graph: Graph,
  { kind, parents: candidates }: AttachmentCandidates,
  conflicts: Collection<HostnameConflicts>,
): Collection<readonly ParentView[]> {
  return graph.derive(`${kind} attachments`, candidates, (key, parents, read): readonly ParentView[] =>
    parents.map((parent) => {
      const [gateway = ""] = parent.gateways;
      const lost = read.get(conflicts, gateway);
      return lost === undefined
        ? parent
        : withoutConflicts(parent, (listener) => lost[conflictKey(listener, kind, key)]);
    }),
  );
}

function withoutConflicts(parent: ParentView, winnerAt: (listener: string) => string | undefined): ParentView {
  const listeners = parent.listeners.filter(({ key }) => winnerAt(key) === undefined);
  if (listeners.length > 0 || parent.listeners.length === 0) return { ...parent, listeners };
  const messages = parent.listeners.map(({ key, name }) => `listener ${name} serves these hosts for ${winnerAt(key)}`);
  const message = `${messages.join("; ")}; an HTTPRoute and a GRPCRoute cannot share a host of a listener`;
  return { ...parent, listeners, error: { reason: Reason.HostnameConflict, message } };
}

interface Contender {
  readonly kind: string;
  readonly key: string;
  readonly createdAt: string;
  readonly hostnames: readonly string[];
}

function contendersOf(
  { kind, objects, parents, byListener }: AttachmentCandidates,
  listener: string,
  read: Read,
): Contender[] {
  return read.members(byListener, listener).map((key) => {
    const attached = (read.get(parents, key) ?? []).flatMap((parent) => parent.listeners);
    return {
      kind,
      key,
      createdAt: read.get(objects, key)?.metadata.creationTimestamp ?? "",
      hostnames: hostnamesAt(listener, attached),
    };
  });
}

function hostnamesAt(listener: string, attached: readonly AttachedListener[]): readonly string[] {
  const hostnames = attached.filter(({ key }) => key === listener).flatMap((each) => each.hostnames);
  return hostnames.length === 0 ? [""] : hostnames;
}

function resolveConflicts(listener: string, contenders: readonly Contender[], conflicts: Record<string, string>): void {
  const serving: Contender[] = [];
  for (const contender of contenders.toSorted(byAge)) {
    const { kind, key, hostnames } = contender;
    const winner = serving.find((other) => other.kind !== kind && meet(other.hostnames, hostnames));
    if (winner === undefined) serving.push(contender);
    else conflicts[conflictKey(listener, kind, key)] = `${winner.kind} ${winner.key}`;
  }
}

function byAge(a: Contender, b: Contender): number {
  return compare(a.createdAt, b.createdAt) || compare(a.key, b.key) || compare(a.kind, b.kind);
}

function meet(some: readonly string[], others: readonly string[]): boolean {
  return some.some((one) => others.some((other) => intersectHostname(one, other) !== undefined));
}
