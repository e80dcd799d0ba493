/**
 * Plans the responses of one push: additions in SEND_ORDER, then removals in the opposite order, so that no resource
 * ever refers to one that is not there yet or no longer there. `session.ts` uses it.
 */
import type { Resource, ResourceType } from "../../ir/resource.ts";
import { SEND_ORDER } from "../codec.ts";
import type { Subscription } from "./subscriptions.ts";

export interface Step {
  readonly type: ResourceType;
  readonly set: readonly Resource[];
  readonly removed: readonly string[];
}

/** The resources that the data plane should hold, by type and key. */
export type State = ReadonlyMap<ResourceType, ReadonlyMap<string, Resource>>;

const NOTHING: ReadonlyMap<string, Resource> = new Map();

export function resourcesOf(state: State, type: ResourceType): ReadonlyMap<string, Resource> {
  return state.get(type) ?? NOTHING;
}

/**
 * Takes the differences of all subscriptions.
 * @param unanswered types with a new subscription: each gets one response even without any change, because the data
 * plane waits for a first response of each type
 */
export function planPush(
  subscriptions: ReadonlyMap<ResourceType, Subscription>,
  state: State,
  unanswered: ReadonlySet<ResourceType>,
): Step[] {
  const sets: Step[] = [];
  const removals: Step[] = [];
  for (const type of SEND_ORDER) {
    const subscription = subscriptions.get(type);
    if (subscription === undefined) continue;
    const { set, removed } = subscription.take(resourcesOf(state, type));
    if (unanswered.has(type)) sets.push({ type, set, removed });
    else {
      if (set.length > 0) sets.push({ type, set, removed: [] });
      if (removed.length > 0) removals.unshift({ type, set: [], removed });
    }
  }
  return [...sets, ...removals];
}
