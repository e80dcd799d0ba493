import assert from "node:assert/strict";
import { Session } from "node:inspector/promises";
import { test } from "node:test";
import { normalise } from "../../../../src/sources/directory/normalise.ts";
import { parseManifest, parseManifestInSteps } from "../../../../src/sources/directory/parse.ts";

function only(text: string): Readonly<Record<string, unknown>> {
  const { objects, errors } = parseManifest(text);
  assert.deepEqual(errors, []);
  assert.equal(objects.length, 1);
  return objects[0]?.value ?? {};
}

test("scalars are read as kubectl reads them", () => {
  const value = only(
    "a: y\nb: on\nc: No\nd: 010\ne: 1_000\nf: 0x1F\ng: 2024-01-02T03:04:05Z\nh: 2024-01-02\ni: 1:30\nj: ~\nk: '010'\nl: 1e3\n",
  );
  assert.deepEqual(value, {
    a: true,
    b: true,
    c: false,
    d: 8,
    e: 1000,
    f: 31,
    g: "2024-01-02T03:04:05Z",
    h: "2024-01-02",
    i: "1:30",
    j: null,
    k: "010",
    l: 1000,
  });
});

test("merge keys and anchors within one document are resolved", () => {
  assert.deepEqual(only("base: &base {x: 1}\nuse:\n  <<: *base\n  z: 2\n"), { base: { x: 1 }, use: { x: 1, z: 2 } });
});

test("a repeated key is a fault with its place", () => {
  const { objects, errors } = parseManifest("a: 1\nb: 2\na: 3\n");
  assert.deepEqual(objects, []);
  assert.deepEqual(
    errors.map(({ line, column }) => ({ line, column })),
    [{ line: 3, column: 1 }],
  );
});

test("empty documents and comments alone are nothing", () => {
  const { objects, errors } = parseManifest("---\n# only a comment\n---\n\n---\nkind: X\n---\n");
  assert.equal(objects.length, 1);
  assert.deepEqual(errors, []);
});

test("lists are taken apart and their items keep their places", () => {
  const { objects } = parseManifest(
    "apiVersion: v1\nkind: List\nitems:\n- kind: A\n  spec: {x: 1}\n- kind: B\n  spec:\n    z: 2\n",
  );
  assert.deepEqual(
    objects.map(({ value }) => value["kind"]),
    ["A", "B"],
  );
  assert.deepEqual(objects[1]?.locate("spec.z"), { line: 8, column: 5 });
  const typed = parseManifest("apiVersion: v1\nkind: SecretList\nitems: [{metadata: {name: a}}]\n").objects;
  assert.deepEqual(typed[0]?.value, { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } });
});

test("a path that is not written down leads to its nearest ancestor, also through keys with dots", () => {
  const [object] = parseManifest("metadata:\n  annotations:\n    a.b/c: x\nspec:\n  rules:\n  - name: one\n").objects;
  assert.deepEqual(object?.locate("metadata.annotations.a.b/c"), { line: 3, column: 5 });
  assert.deepEqual(object?.locate("spec.rules[0].backendRefs[2].port"), { line: 6, column: 5 });
  assert.deepEqual(object?.locate("spec.missing"), { line: 4, column: 1 });
});

test("places are found again after the syntax tree was let go", async () => {
  const { objects } = parseManifest("# first\nkind: A\n---\nkind: B\nspec:\n  a: [1, 2]\n");
  const before = objects.map(({ locate, mark }) => [locate("spec.a[1]"), mark("spec.a[1]", "value")]);
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.collectGarbage");
  assert.deepEqual(before[1]?.[0], { line: 6, column: 10 });
  assert.deepEqual(
    objects.map(({ locate, mark }) => [locate("spec.a[1]"), mark("spec.a[1]", "value")]),
    before,
  );
  session.disconnect();
});

test("aliases of aliases do not unfold without bound", () => {
  const levels = Array.from(
    { length: 12 },
    (_, at) => `l${at + 1}: &l${at + 1} [${Array(10).fill(`*l${at}`).join(", ")}]`,
  );
  const { objects, errors } = parseManifest(`l0: &l0 [x]\n${levels.join("\n")}\n`);
  assert.deepEqual(objects, []);
  assert.equal(errors.length, 1);
});

test("ten thousand levels are a fault and not the end of the process", () => {
  for (const text of [
    `a: ${"[".repeat(10_000)}${"]".repeat(10_000)}`,
    '{"a":'.repeat(10_000) + "1" + "}".repeat(10_000),
  ]) {
    const { objects, errors } = parseManifest(text);
    assert.deepEqual(objects, []);
    assert.equal(errors.length, 1);
    assert.match(errors[0]?.message ?? "", /nested too deeply/);
  }
});

test("text, numbers and lists are no manifests", () => {
  for (const text of ["hello", "3", "- a\n- b", "a: .inf", "a: !!binary aGVsbG8="]) {
    const { objects, errors } = parseManifest(text);
    assert.deepEqual(objects, [], text);
    assert.equal(errors.length, 1, text);
  }
});

test("a secret's text becomes base64 data and wins over it, and no fault carries a value", () => {
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s" },
    data: { a: "b2xk", b: "Yg==" },
    stringData: { a: "new" },
  };
  const object = normalise(secret, (_, value) => value);
  assert.ok(!Array.isArray(object));
  assert.deepEqual((object as unknown as { data: unknown; stringData?: unknown }).data, { a: "bmV3", b: "Yg==" });
  assert.equal("stringData" in object, false);
  const faults = normalise({ ...secret, data: { a: "hunter2!" }, stringData: { b: 31337 } }, (_, value) => value);
  assert.ok(Array.isArray(faults));
  assert.deepEqual(
    faults.map(({ path }: { path: string }) => path),
    ["data.a", "stringData.b"],
  );
  assert.doesNotMatch(JSON.stringify(faults), /hunter2|31337/);
});

test("names and namespaces are checked and completed", () => {
  const base = { apiVersion: "v1", kind: "Service" };
  const pathsOf = (metadata: unknown): unknown => {
    const result = normalise({ ...base, metadata }, (_, value) => value);
    return Array.isArray(result)
      ? result.map(({ path }: { path: string }) => path)
      : (result as { metadata: unknown }).metadata;
  };
  assert.deepEqual(pathsOf(undefined), ["metadata.name"]);
  assert.deepEqual(pathsOf({ name: "Upper" }), ["metadata.name"]);
  assert.deepEqual(pathsOf({ name: "a", namespace: "b.c" }), ["metadata.namespace"]);
  assert.deepEqual(pathsOf({ name: "a", creationTimestamp: "2024-01-01T00:00:00Z" }), {
    name: "a",
    namespace: "default",
    creationTimestamp: "2024-01-01T00:00:00Z",
  });
  const scoped = normalise(
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "n", namespace: "x" } },
    (_, value) => value,
  );
  assert.deepEqual((scoped as { metadata: unknown }).metadata, {
    name: "n",
    creationTimestamp: "1970-01-01T00:00:00Z",
  });
});

const N = 5_000;
const lines = (line: (at: number) => string): string => Array.from({ length: N }, (_, at) => line(at)).join("\n");

/** Texts that took seconds or for ever, how many faults are told of them, and what the first one says. */
const COSTLY: Readonly<Record<string, readonly [text: string, count: number, message: RegExp]>> = {
  "keys that repeat": [lines(() => "k: 1"), 20, /Map keys must be unique/],
  "keys of a flow map that repeat": [`{${lines((at) => `k${at % 2_500}: 1,`)}}`, 20, /Map keys must be unique/],
  "keys that are maps of maps": ["? ".repeat(N), 1, /a key must be text|nested too deeply/],
  "keys that are lists": [lines((at) => `? [${at}]\n: 1`), 20, /a key must be text/],
  "anchors and aliases": [lines((at) => `a${at}: &a${at} 1\nb${at}: *a${at}`), 1, /more than 2000 anchors and aliases/],
  "merges of one map": [`x: &x {a: 1}\n${lines((at) => `y${at}: {<<: *x}`)}`, 1, /more than 2000 anchors and aliases/],
  "lists that are not closed": ["[".repeat(N), 1, /nested too deeply|more than a hundred errors/],
  "maps that are not closed": ["{a: ".repeat(N), 1, /nested too deeply|more than a hundred errors/],
  "lines of a quoted text without indentation": [`a: '${"x\n".repeat(N)}'`, 1, /more than a hundred errors/],
  "anchors of one value": [`a: ${"&x ".repeat(N)}1`, 1, /more than a hundred errors/],
  "commas alone": [`[${",".repeat(N)}]`, 1, /more than a hundred errors/],
  "broken lines": [lines(() => "- : : ["), 1, /more than a hundred errors|nested too deeply/],
  "broken documents": [lines(() => "a: b: c\n---"), 101, /Nested mappings|more than/],
  "more documents than a file may have": ["a: 1\n---\n".repeat(10_001), 1, /more than 10000 documents/],
  "more objects than a file may have": [
    JSON.stringify({ apiVersion: "v1", kind: "List", items: Array.from({ length: 10_001 }, () => 1) }),
    1,
    /more than 10000 objects/,
  ],
};

for (const [name, [text, count, message]] of Object.entries(COSTLY)) {
  test(`${name} are faults, and few of them`, () => {
    const { objects, errors } = parseManifest(text);
    assert.deepEqual(objects, []);
    assert.match(errors[0]?.message ?? "", message);
    assert.ok(errors.length <= count, `${errors.length} faults`);
  });
}

test("a file is read in pieces, however many objects it has", () => {
  const steps = parseManifestInSteps(`${lines((at) => `kind: A\nat: ${at}\n---`)}`);
  let pieces = 0;
  for (let step = steps.next(); step.done !== true; step = steps.next()) pieces++;
  assert.ok(pieces >= 2 * N, `${pieces} pieces`);
});
