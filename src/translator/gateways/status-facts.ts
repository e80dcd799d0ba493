/**
 * Collects what the status of a Gateway says of its own views and of its stored status: what data planes once had they
 * have again when they come back. `../graph.ts` uses it.
 */
import type { Gateway } from "../../../generated/types/gateway-api/gateway.ts";
import type { ListenerSet } from "../../../generated/types/gateway-api/listenerset.ts";
import { Condition } from "../../api/conditions.ts";
import type { GatewayStatusInput, ProgrammedState } from "../shared/status-input.ts";
import type { GatewayView } from "../shared/views.ts";

/** Returns what the stored status of a Gateway or ListenerSet says that data planes have. */
export function storedProgrammed({ status }: Pick<Gateway | ListenerSet, "status"> = {}): ProgrammedState {
  const { conditions = [], listeners = [] } = status ?? {};
  const isTrue = ({ type, status: value }: { readonly type: string; readonly status: string }): boolean =>
    type === Condition.Programmed && value === "True";
  return {
    whole: conditions.some(isTrue),
    listeners: listeners.filter((listener) => (listener.conditions ?? []).some(isTrue)).map(({ name }) => name),
  };
}

/** Returns what the status of a Gateway says of itself, whatever is deployed and attached. @param stored the object */
export function gatewayFacts(
  { id, generation, listeners, sets, client, admitsUnverifiedClients }: GatewayView,
  stored: Gateway | undefined,
): GatewayFacts {
  const joined = sets.filter((set) => set.listeners.some(({ error }) => error === undefined));
  return {
    id,
    generation,
    listeners,
    client,
    admitsUnverifiedClients,
    attachedListenerSets: joined.length,
    listenerSets: sets.map((set) => set.id),
    programmed: storedProgrammed(stored),
  };
}

type GatewayFacts = Pick<
  GatewayStatusInput,
  | "id"
  | "generation"
  | "listeners"
  | "client"
  | "admitsUnverifiedClients"
  | "attachedListenerSets"
  | "listenerSets"
  | "programmed"
>;
