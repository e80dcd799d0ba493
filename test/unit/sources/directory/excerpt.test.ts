/** Where a fault is marked, and that the line shown with it tells no secret. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseManifest } from "../../../../src/sources/directory/parse.ts";

const HEAD = "apiVersion: gwproxy.dev/v1alpha1\nkind: GwPolicy\nmetadata: {name: p}\n";

/** "line:column text" and below it the mark. */
function marked(text: string, path: string, about: "value" | "name" = "value"): string {
  const mark = parseManifest(text).objects.at(-1)?.mark(path, about);
  assert.ok(mark?.excerpt);
  const { text: line, from, length } = mark.excerpt;
  return `${mark.line}:${mark.column}\n${line}\n${" ".repeat(from)}${"^".repeat(length)}`;
}

test("a scalar and a flow collection are marked themselves, a block by its key", () => {
  const text = `${HEAD}spec:\n  traffic:\n    a: [1, 2]\n    b: "x y" # why\n    c:\n      - d: 1\n        e: 2\n    f:\n`;
  assert.equal(marked(text, "spec.traffic.a"), "6:8\n    a: [1, 2]\n       ^^^^^^");
  assert.equal(marked(text, "spec.traffic.b"), '7:8\n    b: "x y" # why\n       ^^^^^');
  assert.equal(marked(text, "spec.traffic.c"), "8:5\n    c:\n    ^");
  assert.equal(marked(text, "spec.traffic.c[0]"), "9:9\n      - d: 1\n        ^");
  assert.equal(marked(text, "spec.traffic.c[0].e"), "10:12\n        e: 2\n           ^");
  assert.equal(marked(text, "spec.traffic.f"), "11:5\n    f:\n    ^");
});

test("what is missing is marked at the nearest thing that is there", () => {
  const text = `${HEAD}spec:\n  traffic: {timeouts: {}}\n`;
  assert.equal(marked(text, "spec.targetRefs"), "4:1\nspec:\n^^^^");
  assert.equal(marked(text, "spec.traffic.timeouts.request"), "5:13\n  traffic: {timeouts: {}}\n            ^^^^^^^^");
});

test("secrets of our kinds are masked wherever they stand on the line", () => {
  const text = `${HEAD}spec:\n  backend:\n    auth: {key: sesame, location: 7}\n`;
  assert.equal(
    marked(text, "spec.backend.auth.location"),
    "6:35\n    auth: {key: ***, location: 7}\n                               ^",
  );
  assert.equal(marked(text, "spec.backend.auth.key"), "6:17\n    auth: {key: ***, location: 7}\n                ^^^");
  assert.equal(marked(`${HEAD}spec:\n  backend:\n    auth: sesame\n`, "spec.backend.auth").includes("sesame"), false);
});

test("a secret behind an anchor or on several lines is masked as well", () => {
  const text = `${HEAD}x: &a sesame\nspec:\n  backend:\n    auth: {key: *a}\n`;
  assert.equal(marked(text, "x"), "4:7\nx: &a ***\n      ^^^");
  const block = `${HEAD}spec:\n  backend:\n    auth:\n      key: |\n        open\n        sesame\n`;
  assert.doesNotMatch(marked(block, "spec.backend.auth.key"), /open|sesame/);
});

test("of an unknown field only the name is shown: a secret may stand under a name that is not right", () => {
  const text = `${HEAD}spec:\n  backend:\n    auth: {keys: sesame}\n`;
  assert.equal(marked(text, "spec.backend.auth.keys", "name"), "6:12\n    auth: {keys: ***}\n           ^^^^");
});

test("of a Secret nothing is shown but what names it, nor of what kubectl applied last", () => {
  const text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: sesame, b: 5}\n";
  assert.doesNotMatch(marked(text, "stringData.b"), /sesame|5/);
  assert.match(marked(text, "metadata.name"), /metadata: \{name: s\}/);
  const applied = "kubectl.kubernetes.io/last-applied-configuration";
  const annotated = `${HEAD.replace("{name: p}", `{name: p, annotations: {"${applied}": sesame}}`)}spec: {}\n`;
  assert.doesNotMatch(marked(annotated, "metadata.name"), /sesame/);
});

test("a document that cannot be read shows its line only when it holds no place for secrets", () => {
  const [open] = parseManifest("kind: [\nname: x\n").errors;
  assert.equal(open?.excerpt?.text, "kind: [");
  for (const text of ["kind: Secret\ndata: {a: [\n", "spec: {auth: {key: sesame, [\n"]) {
    assert.deepEqual(
      parseManifest(text).errors.map(({ excerpt }) => excerpt),
      [undefined],
    );
  }
});

test("a long line is cut to what is around the fault, and control characters do not get through", () => {
  const text = `${HEAD}spec: {a: "${"x".repeat(500)}", b: 1, c: "${"y".repeat(500)}"}\n`;
  const mark = parseManifest(text).objects[0]?.mark("spec.b", "value");
  assert.ok(mark?.excerpt);
  assert.equal(mark.column, 518);
  assert.ok(mark.excerpt.text.length < 200);
  assert.equal(mark.excerpt.text.slice(mark.excerpt.from, mark.excerpt.from + mark.excerpt.length), "1");
  assert.doesNotMatch(marked(`${HEAD}spec: {a: "\u009B31m", b: 1}\n`, "spec.b"), /\u009B/);
});

test("every repeated key of a document is a fault, and only the first fault of its syntax", () => {
  const { errors } = parseManifest("a: 1\na: 2\nb: 1\nb: 2\n");
  assert.deepEqual(
    errors.map(({ line }) => line),
    [2, 4],
  );
});

/** An expression in each style of YAML; `nosuch` is what is wrong in it. */
const STYLES: Readonly<Record<string, string>> = {
  plain: "a: true && nosuch.x",
  "plain on several lines": "a: true &&\n  nosuch.x",
  "in single quotes": "a: '''it''s'' == \"x\" && nosuch.x'",
  "in double quotes": String.raw`a: "\"x\" == 'x' && nosuch.x"`,
  "as a block": "a: |\n  true &&\n\n    nosuch.x\n",
  "as a folded block": "a: >-\n  true &&\n  nosuch.x\n",
  "before a comment": "b: {c: 1}\na: true && nosuch.x # nosuch",
};

for (const [style, lines] of Object.entries(STYLES)) {
  test(`a fault inside of a text ${style} is marked there`, () => {
    const text = `apiVersion: v1\nkind: A\n${lines}`;
    const before = text.slice(0, text.indexOf("nosuch")).split("\n");
    const [object] = parseManifest(text).objects;
    const value = String(object?.value["a"]);
    const mark = object?.mark("a", "value", value.indexOf("nosuch"));
    assert.deepEqual([mark?.line, mark?.column], [before.length, (before.at(-1)?.length ?? 0) + 1]);
    const { excerpt } = mark ?? {};
    assert.equal(excerpt?.text.slice(excerpt.from, excerpt.from + excerpt.length), "nosuch.x");
  });
}

test("what is not closed is named where it is opened", () => {
  const lineOf = (text: string): number | undefined => parseManifest(text).errors[0]?.line;
  assert.equal(lineOf('kind: A\nname: "x\nspec:\n  a: 1\n  b: 2\n'), 2);
  assert.equal(lineOf("kind: A\nname: 'x\nspec:\n  a: 1\n"), 2);
  assert.equal(lineOf("kind: A\nlist: [a, b\nspec:\n  a: 1\n"), 2);
  assert.equal(lineOf("kind: A\nmap: {a: 1\nspec:\n  a: 1\n"), 2);
});
