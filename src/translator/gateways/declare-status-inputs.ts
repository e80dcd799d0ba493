/**
 * Declares the status inputs of Gateways and ListenerSets: their views, their deployment plans, the number of attached
 * routes, and what their stored status says. `../graph.ts` uses it.
 */
import type { Gateway } from "../../../generated/types/gateway-api/gateway.ts";
import type { ListenerSet } from "../../../generated/types/gateway-api/listenerset.ts";
import { Condition } from "../../api/conditions.ts";
import type { Collection, Readable } from "../../lib/collections/collection.ts";
import type { Graph, Read } from "../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../lib/collections/groups.ts";
import type { ProgrammedState, StatusInput } from "../shared/status-input.ts";
import type { CatalogSourceView, GatewayView, ListenerSetView, ListenerView } from "../shared/views.ts";
import type { DeploymentPlan } from "./deployment-plan.ts";

export interface GatewayStatusCollections {
  readonly gateways: Collection<GatewayView>;
  readonly listenerSets: Collection<ListenerSetView>;
  readonly gatewayObjects: Readable<Gateway>;
  readonly listenerSetObjects: Readable<ListenerSet>;
  readonly plans: Readable<DeploymentPlan>;
  readonly catalogs: Readable<{ readonly sources: readonly CatalogSourceView[] }>;
  /** Routes of each kind, by listener. */
  readonly routes: readonly { readonly byListener: ReadableGroups }[];
}

export function declareGatewayStatusInputs(
  graph: Graph,
  { gateways, listenerSets, gatewayObjects, listenerSetObjects, plans, catalogs, routes }: GatewayStatusCollections,
): Readonly<Record<"Gateway" | "ListenerSet", Collection<StatusInput>>> {
  const attachedTo = (listeners: readonly ListenerView[], read: Read): ReadonlyMap<string, number> => {
    const countOf = (listener: string): number =>
      routes.reduce((sum, { byListener }) => sum + read.size(byListener, listener), 0);
    return new Map(listeners.map(({ key }) => [key, countOf(key)]));
  };
  return {
    Gateway: graph.derive("gateway status inputs", gateways, (key, gateway, read): StatusInput => {
      const { id, generation, listeners, sets, client, admitsUnverifiedClients } = gateway;
      const { error, addressError, address } = read.get(plans, key) ?? {};
      const servingSets = sets.filter((set) => set.listeners.some((listener) => listener.error === undefined));
      return {
        kind: "Gateway",
        id,
        generation,
        listeners,
        client,
        admitsUnverifiedClients,
        error,
        addressError,
        address,
        catalogSources: read.get(catalogs, key)?.sources ?? [],
        attachedListenerSets: servingSets.length,
        listenerSets: sets.map((set) => set.id),
        programmed: storedProgrammed(read.get(gatewayObjects, key)),
        attached: attachedTo(listeners, read),
      };
    }),
    ListenerSet: graph.derive("listener set status inputs", listenerSets, (key, set, read): StatusInput => ({
      kind: "ListenerSet",
      ...set,
      programmed: storedProgrammed(read.get(listenerSetObjects, key)),
      attached: attachedTo(set.listeners, read),
    })),
  };
}

/**
 * Reads from the stored status what has been programmed before. It stays programmed while no data plane is connected,
 * because a data plane that comes back gets the same configuration.
 */
function storedProgrammed({ status }: Pick<Gateway | ListenerSet, "status"> = {}): ProgrammedState {
  const { conditions = [], listeners = [] } = status ?? {};
  const isTrue = ({ type, status: value }: { readonly type: string; readonly status: string }): boolean =>
    type === Condition.Programmed && value === "True";
  return {
    whole: conditions.some(isTrue),
    listeners: listeners.filter((listener) => (listener.conditions ?? []).some(isTrue)).map(({ name }) => name),
  };
}
