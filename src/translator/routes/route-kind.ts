/**
 * Declares the collections of one kind of route: attachments, resources, visibility and status input. `../graph.ts`
 * calls it for each kind.
 */
import { type KubeObject, objectId } from "../../api/object.ts";
import type { Collection } from "../../lib/collections/collection.ts";
import type { ReadableGroups } from "../../lib/collections/groups.ts";
import type { Graph, Input, Read } from "../../lib/collections/graph.ts";
import type { AttachableRoute } from "./attach.ts";
import type { ParentView } from "../shared/views.ts";
import type { BackendCollections } from "../references/backend-refs.ts";
import type { RouteStatusInput, StatusInput } from "../shared/status-input.ts";
import { gatewaysByUse, union, type RouteVisibility } from "../references/visibility.ts";
import type { TranslatedRoute } from "./route.ts";
import { declareScopedResources, scopeTo } from "../shared/scoped-resources.ts";
import type { ScopedResource } from "../shared/resource-store.ts";
import { groupByListener } from "./hostname-conflicts.ts";

export interface RouteKindOptions<R extends object> {
  readonly kind: RouteStatusInput["kind"];
  readonly input: Input<R>;
  /** Listeners that each route attaches to. */
  readonly attachments: Collection<readonly ParentView[]>;
  readonly backends: BackendCollections;
  translate(route: R, parents: readonly ParentView[], context: BackendCollections, read: Read): TranslatedRoute;
}

export interface RouteKind {
  readonly attachments: Collection<readonly ParentView[]>;
  /** Routes, grouped by listener. */
  readonly byListener: ReadableGroups;
  readonly visibility: Collection<RouteVisibility>;
  /** Gateways from which routes lead to a backend, grouped by backend. */
  readonly gatewaysByBackend: ReadableGroups;
  readonly scopedResources: Collection<readonly ScopedResource[]>;
  readonly statusInputs: Collection<StatusInput>;
}

export function declareRouteKind<R extends AttachableRoute & KubeObject>(
  graph: Graph,
  { kind, input, attachments, backends, translate }: RouteKindOptions<R>,
): RouteKind {
  const routes = graph.derive(`${kind} translations`, input, (key, route, read) =>
    translate(route, read.get(attachments, key) ?? [], backends, read),
  );
  const visibility = graph.derive(`${kind} visibility`, input, (key, route, read): RouteVisibility | undefined => {
    const translated = read.get(routes, key);
    return translated && routeVisibility(route, read.get(attachments, key) ?? [], translated);
  });
  return {
    attachments,
    byListener: groupByListener(attachments),
    visibility,
    gatewaysByBackend: visibility.groups(({ backends: named, gateways }) => gatewaysByUse(named, gateways)),
    scopedResources: declareScopedResources(graph, `resources of ${kind}`, routes, (key, { resource }, read) =>
      scopeTo(read.get(visibility, key)?.gateways, [resource]),
    ),
    statusInputs: graph.derive(`${kind} status inputs`, input, (key, route, read): StatusInput | undefined => {
      const translated = read.get(routes, key);
      return (
        translated && {
          kind,
          id: objectId(route),
          generation: route.metadata.generation ?? 0,
          key: translated.resource.key,
          resource: translated.resource.type,
          parents: read.get(attachments, key) ?? [],
          errors: translated.errors,
        }
      );
    }),
  };
}

function routeVisibility(
  route: AttachableRoute,
  parents: readonly ParentView[],
  translated: TranslatedRoute,
): RouteVisibility {
  return {
    key: translated.resource.key,
    gateways: union(parents.map(({ error, gateways }) => (error === undefined ? gateways : []))),
    rules: (route.spec.rules ?? []).flatMap((rule) => rule.name ?? []),
    isEveryRuleNamed: (route.spec.rules ?? []).every(({ name }) => name !== undefined),
    backends: translated.backends,
    foreign: parents.length === 0 && (route.spec.parentRefs ?? []).length > 0,
  };
}
