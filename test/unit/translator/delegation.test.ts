/** Delegation stays incremental: an edit of one route of a large tree sends that route, and recomputes no status else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../../src/api/object.ts";
import { createTranslator } from "../../../src/translator/translate.ts";
import type { Translator } from "../../../src/translator/translator.ts";

const GATEWAY = "gateway.networking.k8s.io";
const LEVELS = 10;
const CHILDREN = 5000;

function object(kind: string, name: string, spec: object): KubeObject {
  // Only objects of this test are made here, and each has the shape of its kind.
  return { apiVersion: `${GATEWAY}/v1`, kind, metadata: { namespace: "default", name }, spec } as unknown as KubeObject;
}

function gateway(): KubeObject {
  return object("Gateway", "gw", {
    gatewayClassName: "gwproxy",
    listeners: [{ name: "http", port: 80, protocol: "HTTP" }],
  });
}

/** Returns level `at` of a chain, which delegates to the next one; the last delegates to all children. */
function level(at: number, more: object = {}): KubeObject {
  const name = at === LEVELS - 1 ? "leaf=yes" : `level-${at + 1}`;
  const parentRefs = at === 0 ? [{ name: "gw" }] : [{ group: GATEWAY, kind: "HTTPRoute", name: `level-${at - 1}` }];
  const backendRefs = [{ group: GATEWAY, kind: "HTTPRoute", name }];
  return object("HTTPRoute", `level-${at}`, {
    parentRefs,
    rules: [{ matches: [{ path: { value: "/" } }], backendRefs, ...more }],
  });
}

function leaf(at: number, value = `/${at}`): KubeObject {
  const route = object("HTTPRoute", `leaf-${at}`, { rules: [{ matches: [{ path: { value } }] }] });
  return { ...route, metadata: { ...route.metadata, labels: { leaf: "yes" } } };
}

function apply(translator: Translator, ...objects: KubeObject[]): { sent: string[]; touched: number } {
  const { update, touched } = translator.apply(objects.map((each) => ({ type: "set", object: each })));
  return { sent: [...update.set, ...update.removed].map(({ key }) => key), touched: touched.length };
}

test("ten levels and five thousand children: an edit sends one resource", () => {
  const translator = createTranslator({ controllerName: "gwproxy.dev/gwproxy", implicitClass: "gwproxy" });
  const levels = Array.from({ length: LEVELS }, (_, at) => level(at));
  apply(translator, gateway(), ...levels, ...Array.from({ length: CHILDREN }, (_, at) => leaf(at)));
  assert.equal(
    translator.resourcesOf("default/gw").filter(({ type }) => type === "HttpRoute").length,
    LEVELS + CHILDREN,
  );

  const child = apply(translator, leaf(17, "/other"));
  assert.deepEqual(child, { sent: ["httproute/default/leaf-17"], touched: 0 }, "its status says the same as before");
  const added = apply(translator, leaf(CHILDREN));
  assert.deepEqual(added.sent, [`httproute/default/leaf-${CHILDREN}`]);
  assert.equal(added.touched, 1);
  const parent = apply(translator, level(LEVELS - 1, { timeouts: { request: "1s" } }));
  assert.deepEqual(parent, { sent: [`httproute/default/level-${LEVELS - 1}`], touched: 0 });
  const first = apply(translator, level(0, { timeouts: { request: "1s" } }));
  assert.deepEqual(first, { sent: ["httproute/default/level-0"], touched: 0 });

  const id = { group: GATEWAY, kind: "HTTPRoute", namespace: "default", name: "leaf-17" };
  const { update, touched } = translator.apply([{ type: "delete", id }]);
  assert.deepEqual([update.set.length, update.removed.length, touched.length], [0, 1, 0]);
});

test("a loop of two hundred routes ends the translation, and each of its routes says so", () => {
  const translator = createTranslator({ controllerName: "gwproxy.dev/gwproxy", implicitClass: "gwproxy" });
  const LENGTH = 200;
  const ring = Array.from({ length: LENGTH }, (_, at) =>
    object("HTTPRoute", `ring-${at}`, {
      rules: [{ backendRefs: [{ group: GATEWAY, kind: "HTTPRoute", name: `ring-${(at + 1) % LENGTH}` }] }],
    }),
  );
  apply(translator, gateway(), ...ring);
  assert.equal(translator.diagnostics().filter(({ code }) => code === "ref_not_permitted").length, LENGTH);
  assert.equal(
    translator.resourcesOf("default/gw").some(({ type }) => type === "HttpRoute"),
    false,
  );
});

test("a policy of a child that loses everything names its winners: an older one there, or an override of each parent", () => {
  const translator = createTranslator({ controllerName: "gwproxy.dev/gwproxy", implicitClass: "gwproxy" });
  const policy = (name: string, route: string, created: string, strategy?: object): KubeObject => {
    const targetRefs = [{ group: GATEWAY, kind: "HTTPRoute", name: route }];
    const traffic = { timeouts: { request: "1s" } };
    const made = object("GwPolicy", name, { targetRefs, traffic, ...(strategy === undefined ? {} : { strategy }) });
    return { ...made, apiVersion: "gwproxy.dev/v1alpha1", metadata: { ...made.metadata, creationTimestamp: created } };
  };
  const overridingOf = (name: string): unknown => {
    const input = translator.statusInput({ group: "gwproxy.dev", kind: "GwPolicy", namespace: "default", name });
    assert.ok(input?.kind === "GwPolicy");
    return Object.fromEntries(input.overriding);
  };
  const parent = (name: string): KubeObject =>
    object("HTTPRoute", name, {
      parentRefs: [{ name: "gw" }],
      rules: [{ backendRefs: [{ group: GATEWAY, kind: "HTTPRoute", name: "leaf-0" }] }],
    });
  const younger = policy("younger", "leaf-0", "2026-02-01T00:00:00Z");
  apply(translator, gateway(), parent("one"), leaf(0), younger);
  assert.deepEqual(overridingOf("younger"), {});
  apply(translator, policy("older", "leaf-0", "2026-01-01T00:00:00Z"));
  assert.deepEqual(overridingOf("younger"), { "default/gw": ["default/older"] });
  assert.deepEqual(overridingOf("older"), {});
  translator.apply([
    { type: "delete", id: { group: "gwproxy.dev", kind: "GwPolicy", namespace: "default", name: "older" } },
  ]);
  assert.deepEqual(overridingOf("younger"), {});

  apply(translator, policy("lock", "one", "2026-01-01T00:00:00Z", { inheritance: "Override" }));
  assert.deepEqual(overridingOf("younger"), { "default/gw": ["default/lock"] });
  apply(translator, parent("two"));
  assert.deepEqual(overridingOf("younger"), {}, "the other parent leaves it in force");
});
