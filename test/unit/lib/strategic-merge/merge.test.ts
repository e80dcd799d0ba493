/** Strategic merge on small objects; `test/cluster/overlays.test.ts` compares it with a real API server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { OVERLAY_TYPES } from "../../../../generated/overlay-types.ts";
import { findPatchErrors } from "../../../../src/lib/strategic-merge/check.ts";
import { mergePatch } from "../../../../src/lib/strategic-merge/merge.ts";
import type { JsonMap } from "../../../../src/lib/strategic-merge/merge-types.ts";

const POD = { object: "PodSpec" } as const;

function merge(original: JsonMap, patch: JsonMap): unknown {
  assert.deepEqual(findPatchErrors(patch, POD, OVERLAY_TYPES), []);
  const before = structuredClone([original, patch]);
  const merged = mergePatch(original, patch, POD, OVERLAY_TYPES);
  assert.deepEqual([original, patch], before, "the arguments stay as they are");
  return merged;
}

const CASES: readonly (readonly [title: string, original: JsonMap, patch: JsonMap, merged: JsonMap])[] = [
  ["scalars are replaced", { hostname: "a", subdomain: "b" }, { hostname: "c" }, { hostname: "c", subdomain: "b" }],
  [
    "null deletes",
    { hostname: "a", nodeSelector: { x: "1", y: "2" } },
    { hostname: null, nodeSelector: { x: null } },
    { nodeSelector: { y: "2" } },
  ],
  [
    "null without a member is nothing",
    {},
    { hostname: null, securityContext: { runAsUser: null } },
    { securityContext: {} },
  ],
  [
    "items are merged by key, and new ones come first",
    {
      containers: [
        { name: "a", image: "1" },
        { name: "b", image: "2" },
      ],
    },
    {
      containers: [
        { name: "c", image: "3" },
        { name: "b", tty: true },
      ],
    },
    {
      containers: [
        { name: "c", image: "3" },
        { name: "a", image: "1" },
        { name: "b", image: "2", tty: true },
      ],
    },
  ],
  [
    "items are deleted by key",
    { volumes: [{ name: "a" }, { name: "b" }] },
    {
      volumes: [
        { name: "a", $patch: "delete" },
        { name: "none", $patch: "delete" },
      ],
    },
    { volumes: [{ name: "b" }] },
  ],
  [
    "$patch: replace as an item replaces the list",
    { volumes: [{ name: "a" }, { name: "b" }] },
    { volumes: [{ name: "c" }, { $patch: "replace" }] },
    { volumes: [{ name: "c" }] },
  ],
  [
    "a list without a key is replaced",
    { tolerations: [{ key: "a" }] },
    { tolerations: [{ key: "b" }] },
    { tolerations: [{ key: "b" }] },
  ],
  [
    "$patch: replace in a map keeps what is given",
    { securityContext: { runAsUser: 1, fsGroup: 2 } },
    { securityContext: { $patch: "replace", fsGroup: 3 } },
    { securityContext: { fsGroup: 3 } },
  ],
  [
    "$patch: delete empties a map",
    { securityContext: { runAsUser: 1 } },
    { securityContext: { $patch: "delete" } },
    { securityContext: {} },
  ],
  ["$patch: delete of what is not there is nothing", {}, { securityContext: { $patch: "delete" } }, {}],
  [
    "$retainKeys drops the rest",
    { volumes: [{ name: "a", emptyDir: {} }] },
    { volumes: [{ name: "a", $retainKeys: ["name", "configMap"], configMap: { name: "m" } }] },
    { volumes: [{ name: "a", configMap: { name: "m" } }] },
  ],
  [
    "$setElementOrder orders what it names",
    { containers: [{ name: "a" }, { name: "b" }, { name: "c" }] },
    { "$setElementOrder/containers": [{ name: "c" }, { name: "a" }] },
    { containers: [{ name: "b" }, { name: "c" }, { name: "a" }] },
  ],
  [
    "members that no type knows are merged as maps",
    { future: { a: 1, list: [1] } },
    { future: { b: 2, list: [2] } },
    { future: { a: 1, b: 2, list: [2] } },
  ],
  [
    "new values lose what only tells how to merge",
    {},
    { affinity: { nodeAffinity: null, podAffinity: { $patch: "delete" } }, hostIPC: true },
    { affinity: {}, hostIPC: true },
  ],
];

for (const [title, original, patch, merged] of CASES) {
  test(title, () => assert.deepEqual(merge(original, patch), merged));
}

test("scalars of a set are merged, removed and ordered", () => {
  const meta = { object: "ObjectMeta" } as const;
  const patch = { finalizers: ["x/c"], "$deleteFromPrimitiveList/finalizers": ["x/a"] };
  assert.deepEqual(findPatchErrors(patch, meta, OVERLAY_TYPES), []);
  assert.deepEqual(mergePatch({ finalizers: ["x/a", "x/b"] }, patch, meta, OVERLAY_TYPES), {
    finalizers: ["x/c", "x/b"],
  });
});

test("a member named __proto__ is a member", () => {
  const patch = JSON.parse('{"nodeSelector": {"__proto__": "x"}}') as JsonMap;
  const merged = merge({ nodeSelector: { a: "b" } }, patch);
  assert.equal(JSON.stringify(merged), '{"nodeSelector":{"a":"b","__proto__":"x"}}');
});

test("long lists are merged in one pass", () => {
  const items = Array.from({ length: 50_000 }, (_, at) => ({ name: `v${at}` }));
  const merged = merge({ volumes: items }, { volumes: items.toReversed() }) as { volumes: unknown[] };
  assert.equal(merged.volumes.length, items.length);
});

const ERRORS: readonly (readonly [patch: unknown, ...errors: string[]])[] = [
  [{ hostNetwork: "yes", hostname: 1 }, "hostNetwork must be true or false", "hostname must be a string"],
  [{ priority: "1" }, "priority must be a number"],
  [{ priority: 1.5 }, "priority must be a whole number"],
  [{ containers: {} }, "containers must be a list"],
  [{ containers: [{ image: "x" }] }, 'containers[0] needs "name", the merge key of the list'],
  [{ containers: ["x"] }, "containers[0] must be an object"],
  [{ containers: [null] }, "containers[0] must not be null"],
  [
    { containers: [{ name: "a", resources: { limits: { cpu: true } } }] },
    "containers[0].resources.limits.cpu must be a number or a string",
  ],
  [{ securityContext: { $patch: "merge" } }, 'securityContext.$patch must be "delete" or "replace"'],
  [
    { $drop: ["a"] },
    "$drop is not a directive of a strategic merge patch; these are $patch, $retainKeys, $setElementOrder/LIST, $deleteFromPrimitiveList/LIST",
  ],
  [{ $retainKeys: "a" }, "$retainKeys must be a list of member names"],
  [{ $retainKeys: ["a"], hostname: "b" }, '$retainKeys must name "hostname" too, because the patch sets it'],
  [
    { tolerations: [{ $patch: "replace" }] },
    "tolerations[0].$patch has no effect in a list without a merge key, which is replaced as a whole",
  ],
  [
    { "$setElementOrder/containers": ["a"] },
    '$setElementOrder/containers must be a list of items with "name", the merge key of the list',
  ],
  [{ "$setElementOrder/hostname": [] }, "$setElementOrder/hostname is about a member that is not a list"],
  [
    { "$setElementOrder/containers": [{ name: "a" }], containers: [{ name: "b" }] },
    "$setElementOrder/containers must hold every item of the patch, in the same order",
  ],
  [
    { "$deleteFromPrimitiveList/containers": ["a"] },
    "$deleteFromPrimitiveList/containers must be a list of texts or numbers to remove",
  ],
  ["x", " must be an object"],
];

for (const [patch, ...errors] of ERRORS) {
  test(`an error of ${JSON.stringify(patch)}`, () => {
    const found = findPatchErrors(patch, POD, OVERLAY_TYPES).map(({ path, message }) => `${path} ${message}`);
    assert.deepEqual(found, errors);
  });
}

test("nesting and the number of errors have bounds", () => {
  let deep: unknown = {};
  for (let at = 0; at < 5_000; at++) deep = { future: deep };
  assert.match(findPatchErrors(deep, POD, OVERLAY_TYPES)[0]?.message ?? "", /nested too deeply/);
  const wrong = { containers: Array.from({ length: 500 }, () => "x") };
  assert.ok(findPatchErrors(wrong, POD, OVERLAY_TYPES).length <= 20);
});
