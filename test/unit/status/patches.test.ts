import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../../src/api/object.ts";
import type { DesiredCondition, DesiredStatus } from "../../../src/status/desired.ts";
import { statusWrite } from "../../../src/status/patches.ts";

const NOW = new Date("2026-02-03T04:05:06.789Z");
const TIME = "2026-02-03T04:05:06Z";
const OURS = "gwproxy.dev/gwproxy";
const GATEWAY_REF = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw" };

function condition(type: string, status: DesiredCondition["status"] = "True"): DesiredCondition {
  return { type, status, reason: "Reason", message: "", observedGeneration: 1 };
}

function stored(type: string, status: DesiredCondition["status"] = "True"): object {
  return { ...condition(type, status), lastTransitionTime: "2020-01-01T00:00:00Z" };
}

function object(kind: string, status?: object): KubeObject {
  const metadata = { name: "x", namespace: "default", resourceVersion: "7" };
  return { apiVersion: "example.com/v1", kind, metadata, ...(status === undefined ? {} : { status }) } as KubeObject; // status is read as data
}

function route(...conditions: DesiredCondition[]): DesiredStatus {
  return {
    id: { group: "example.com", kind: "Route", namespace: "default", name: "x" },
    form: "listed",
    list: "parents",
    controllerName: OURS,
    entries: conditions.length === 0 ? [] : [{ ref: { name: "gw" }, conditions }],
  };
}

function gateway(extra: Partial<Extract<DesiredStatus, { form: "keyed" }>> = {}): DesiredStatus {
  const id = { group: "example.com", kind: "Gateway", namespace: "default", name: "x" };
  return { id, form: "keyed", conditions: [condition("Accepted"), condition("Programmed")], ...extra };
}

test("a list is written with the version that was read, foreign entries as they came", () => {
  const foreign = { parentRef: { name: "gw" }, controllerName: "other", conditions: [], unknownToUs: true };
  const write = statusWrite(route(condition("Accepted")), object("Route", { parents: [foreign] }), NOW);
  assert.deepEqual(write, {
    form: "replace",
    resourceVersion: "7",
    status: {
      parents: [
        foreign,
        {
          parentRef: GATEWAY_REF,
          controllerName: OURS,
          conditions: [{ ...condition("Accepted"), lastTransitionTime: TIME }],
        },
      ],
    },
  });
});

test("nothing is written when our entries say it already, wherever they stand and in whatever order", () => {
  const own = {
    parentRef: GATEWAY_REF,
    controllerName: OURS,
    conditions: [stored("ResolvedRefs"), stored("Accepted")],
  };
  const foreign = { parentRef: GATEWAY_REF, controllerName: "other", conditions: [] };
  const desired = route(condition("Accepted"), condition("ResolvedRefs"));
  assert.equal(statusWrite(desired, object("Route", { parents: [own, foreign] }), NOW), undefined);
  assert.equal(statusWrite(desired, object("Route", { parents: [foreign, own] }), NOW), undefined);
  assert.equal(statusWrite(route(), object("Route", { parents: [foreign] }), NOW), undefined);
  assert.equal(statusWrite(route(), object("Route"), NOW), undefined);
});

test("a newer generation alone is a change, and its time stays", () => {
  const own = { parentRef: GATEWAY_REF, controllerName: OURS, conditions: [stored("Accepted")] };
  const write = statusWrite(
    route({ ...condition("Accepted"), observedGeneration: 2 }),
    object("Route", { parents: [own] }),
    NOW,
  );
  assert.deepEqual(write?.status["parents"], [
    { ...own, conditions: [{ ...stored("Accepted"), observedGeneration: 2 }] },
  ]);
});

test("the last own entry can be taken away", () => {
  const own = { parentRef: GATEWAY_REF, controllerName: OURS, conditions: [stored("Accepted")] };
  assert.deepEqual(statusWrite(route(), object("Route", { parents: [own] }), NOW)?.status, { parents: [] });
});

test("an object without a version is never written over", () => {
  const { resourceVersion: _, ...metadata } = object("Route").metadata;
  assert.throws(() => statusWrite(route(condition("Accepted")), { ...object("Route"), metadata }, NOW), /version/);
});

test("keyed statuses hold only what is ours", () => {
  const current = object("Gateway", {
    conditions: [stored("Accepted"), stored("example.com/Foreign")],
    addresses: [{ value: "1" }],
  });
  assert.deepEqual(statusWrite(gateway(), current, NOW), {
    form: "apply",
    status: { conditions: [stored("Accepted"), { ...condition("Programmed"), lastTransitionTime: TIME }] },
  });
});

test("a keyed status that says it already is not applied", () => {
  // The Gateway API knows SupportedVersion as well, and we never set it.
  const foreign = [stored("example.com/Foreign"), stored("SupportedVersion")];
  const conditions = [...foreign, stored("Programmed"), stored("Accepted")];
  assert.equal(statusWrite(gateway(), object("Gateway", { conditions }), NOW), undefined);
});

test("a condition of ours that is no longer wanted is a change", () => {
  const conditions = [stored("Accepted"), stored("Programmed"), stored("ResolvedRefs")];
  const write = statusWrite(gateway(), object("Gateway", { conditions }), NOW);
  assert.deepEqual(write?.status["conditions"], [stored("Accepted"), stored("Programmed")]);
});

test("listeners and addresses are compared by what they mean", () => {
  const conditions = [stored("Accepted"), stored("Programmed")];
  const kinds = [{ group: "example.com", kind: "Route" }];
  const listener = (name: string, attachedRoutes: number): object => ({ name, attachedRoutes, supportedKinds: kinds });
  const current = object("Gateway", {
    conditions,
    listeners: [
      { ...listener("b", 0), conditions: [stored("Accepted")] },
      { ...listener("a", 1), conditions: [stored("Accepted")] },
    ],
    addresses: [{ type: "IPAddress", value: "10.0.0.1" }],
  });
  const desired = (routes: number): DesiredStatus =>
    gateway({
      listeners: [
        { name: "a", attachedRoutes: routes, supportedKinds: kinds, conditions: [condition("Accepted")] },
        { name: "b", attachedRoutes: 0, supportedKinds: kinds, conditions: [condition("Accepted")] },
      ],
      addresses: [{ type: "IPAddress", value: "10.0.0.1" }],
    });
  assert.equal(statusWrite(desired(1), current, NOW), undefined);
  const write = statusWrite(desired(2), current, NOW);
  assert.deepEqual(write?.status["listeners"], [
    { ...listener("a", 2), conditions: [stored("Accepted")] },
    { ...listener("b", 0), conditions: [stored("Accepted")] },
  ]);
});
