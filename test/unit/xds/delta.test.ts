import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Resource, ResourceType } from "../../../src/ir/resource.ts";
import { mergeUpdates } from "../../../src/xds/client/session.ts";
import { Store } from "../../../src/xds/client/store.ts";
import { SEND_ORDER, decodeResource, encodeResource } from "../../../src/xds/codec.ts";
import { planPush, type Step } from "../../../src/xds/server/delta.ts";
import { Subscription } from "../../../src/xds/server/subscriptions.ts";
import { backend, endpoints, listener, policy, route } from "./resources.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

/** A few keys per type with a few versions each, so that changes meet. */
const resources: fc.Arbitrary<Resource> = fc
  .record({
    type: fc.integer({ min: 0, max: 4 }),
    key: fc.constantFrom("x", "y", "__proto__"),
    version: fc.nat({ max: 2 }),
  })
  .map(({ type, key, version }) => {
    switch (type) {
      case 0:
        return backend(key, `10.0.0.${version}`);
      case 1:
        return endpoints(key, `10.0.0.${version}`);
      case 2:
        return listener(key, `v${version}.example`);
      case 3:
        return policy(key, BigInt(version));
      default:
        return route(key, `/${version}`);
    }
  });

type State = Map<ResourceType, Map<string, Resource>>;

function stateOf(list: readonly Resource[]): State {
  const state: State = new Map(SEND_ORDER.map((type) => [type, new Map()]));
  for (const resource of list) state.get(resource.type)?.set(resource.key, resource);
  return state;
}

function versionsOf(state: State): Record<string, Record<string, string>> {
  return Object.fromEntries(
    SEND_ORDER.map((type) => [
      type,
      Object.fromEntries([...(state.get(type) ?? [])].map(([key, { version }]) => [key, version])),
    ]),
  );
}

function subscribe(store: Store, state: State): Map<ResourceType, Subscription> {
  return new Map(
    SEND_ORDER.map((type) => {
      const subscription = new Subscription(store.versions(type));
      for (const key of state.get(type)?.keys() ?? []) subscription.mark(key);
      return [type, subscription];
    }),
  );
}

/** What travels: encoded by one end, decoded by the other. */
function travel(steps: readonly Step[]): Step[] {
  return steps.map(({ type, set, removed }) => ({
    type,
    set: set.map((resource) => decodeResource(type, encodeResource(resource))),
    removed,
  }));
}

test("whatever was held before, the store holds the wanted versions after one push", () => {
  assertProperty(
    fc.property(fc.array(fc.array(resources)), (states) => {
      const store = new Store();
      for (const list of states) {
        const state = stateOf(list);
        const steps = travel(planPush(subscribe(store, state), state, new Set(SEND_ORDER)));
        store.admit(mergeUpdates(steps), { refused: [] });
        for (const type of SEND_ORDER) assert.deepEqual(store.versions(type), versionsOf(state)[type]);
        assert.deepEqual(planPush(subscribe(store, state), state, new Set()), [], "a second push has nothing to say");
      }
    }),
  );
});

test("changes on one stream lead to the same store as a fresh start, step by step and merged", () => {
  assertProperty(
    fc.property(fc.array(resources), fc.array(fc.array(resources)), (first, later) => {
      const [stepwise, merged] = [new Store(), new Store()];
      const subscriptions = subscribe(stepwise, stateOf(first));
      const all = travel(planPush(subscriptions, stateOf(first), new Set(SEND_ORDER)));
      stepwise.admit(mergeUpdates(all), { refused: [] });
      let state = stateOf(first);
      for (const list of later) {
        const touched = [...state.values(), ...stateOf(list).values()].flatMap((byKey) => [...byKey.values()]);
        for (const { type, key } of touched) subscriptions.get(type)?.mark(key);
        state = stateOf(list);
        const steps = travel(planPush(subscriptions, state, new Set()));
        for (const step of steps) stepwise.admit(mergeUpdates([step]), { refused: [] });
        all.push(...steps);
      }
      merged.admit(mergeUpdates(all), { refused: [] });
      for (const type of SEND_ORDER) {
        assert.deepEqual(stepwise.versions(type), versionsOf(state)[type]);
        assert.deepEqual(merged.versions(type), versionsOf(state)[type]);
      }
    }),
  );
});

test("a push sets in the order of references and removes in the opposite one", () => {
  const store = new Store();
  const old = stateOf([backend("old"), listener("old"), policy("old"), route("old")]);
  store.admit({ set: [...old.values()].flatMap((byKey) => [...byKey.values()]), removed: [] }, { refused: [] });
  const state = stateOf([route("new"), listener("new"), policy("new"), endpoints("new"), backend("new")]);
  const steps = planPush(subscribe(store, state), state, new Set());
  assert.deepEqual(
    steps.map(({ type, set }) => `${set.length > 0 ? "+" : "-"}${type}`),
    ["+Backend", "+Endpoints", "+Policy", "+Listener", "+HttpRoute", "-HttpRoute", "-Listener", "-Policy", "-Backend"],
  );
});

test("a refused resource keeps its earlier version in the store", () => {
  const store = new Store();
  const [good, bad] = [route("r", "/1"), route("r", "/2")];
  store.admit({ set: [good], removed: [] }, { refused: [] });
  store.admit({ set: [bad], removed: [] }, { refused: [{ type: "HttpRoute", key: good.key, reason: "no" }] });
  assert.deepEqual(store.versions("HttpRoute"), { [good.key]: good.version });
});
