/** The reference pages: every field is there, every link leads somewhere, and what is not done says so. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { emitDocs, type Evidence } from "../../../codegen/emit/docs.ts";
import { createGraph } from "../../../codegen/graph.ts";
import { loadSchemas, readSchemas } from "../../../codegen/load.ts";
import { isStruct } from "../../../codegen/schema.ts";

const ROOT = join(import.meta.dirname, "../../..");
const FOLDER = join(ROOT, "docs/reference");
const { components, kinds } = loadSchemas(join(ROOT, "crds/schemas/"));
const graph = createGraph(components);

const KINDS = `
group: example.dev
version: v1
kinds:
  - { kind: Thing, component: Thing, plural: things, singular: thing, list: ThingList, shortNames: [th], categories: [], labels: {}, columns: [] }
`;
const SCHEMAS = `
Thing:
  description: A thing.
  type: object
  required: [spec]
  properties:
    spec: { $ref: ThingSpec, description: What it is. }
ThingSpec:
  description: What a thing is.
  type: object
  x-gw-exactly-one-of: [left, right]
  properties:
    left: { $ref: Side, description: "One side | not the other." }
    right: { $ref: Side, description: The other side. }
    sizes: { type: array, maxItems: 3, x-kubernetes-list-type: set, items: { $ref: Size }, description: Sizes. }
Side:
  description: A side.
  type: object
  properties:
    name: { type: string, maxLength: 5, default: x, description: Its name. }
Size:
  description: From small to large.
  type: integer
  minimum: 1
  maximum: 9
`;

function page(evidence: Partial<Evidence>): string {
  const source = readSchemas(
    new Map([
      ["kinds", KINDS],
      ["thing", SCHEMAS],
    ]),
  );
  const none = { implementation: new Map(), mentions: new Map(), proofs: new Map(), examples: new Map() };
  const pages = emitDocs(createGraph(source.components), source.kinds, { ...none, ...evidence });
  return pages.get("thing.md") ?? "";
}

test("a section has the fields with type, bounds and default, the rules, and where it is used", () => {
  const text = page({});
  assert.match(text, /^### Side$/m);
  assert.match(text, /^At `spec\.left`, `spec\.right`\.$/m);
  assert.match(text, /^\| `name` \| string \| at most 5 characters \| `"x"` \| Its name\. \|$/m);
  assert.match(text, /^\| `left` \| \[Side\]\(#side\) \| {2}\| {2}\| One side \\\| not the other\. \|$/m);
  assert.match(text, /^\| `sizes` \| list of \[Size\]\(#size\) \| at most 3 items; unique \|/m);
  assert.match(text, /^- exactly one of the fields in \[left right\] must be set$/m);
  assert.match(text, /<a id="size"><\/a>Size \| integer \| 1 to 9 \| From small to large\. \|/);
});

test("what no code reads and no test proves says so; what some do is linked, with how far it goes", () => {
  assert.match(page({}), /^\| `name` \| no code reads it yet \| not proven yet \|$/m);
  const text = page({
    implementation: new Map([["Side.name", ["src/translator/thing.ts"]]]),
    proofs: new Map([["Thing spec.left.name", [{ file: "test/feature/thing.test.ts", name: "the name shows" }]]]),
  });
  assert.match(
    text,
    /^\| `name` \| \[translator\/thing\.ts\]\(\.\.\/\.\.\/src\/translator\/thing\.ts\) \| \[the name shows\]\(\.\.\/\.\.\/test\/feature\/thing\.test\.ts\) \(1 of 2 paths\) \|$/m,
  );
  assert.match(text, /3 fields can be written; tests through real sockets prove 1 of them/);
});

test("a field that is proven is never called unread, and links what names it", () => {
  const proofs = new Map([["Thing spec.left.name", [{ file: "test/feature/thing.test.ts", name: "the name shows" }]]]);
  assert.match(page({ proofs }), /^\| `name` \| {2}\| \[the name shows\]/m);
  const mentions = new Map([["Side.name", ["src/translator/thing.ts"]]]);
  assert.match(page({ proofs, mentions }), /^\| `name` \| \[translator\/thing\.ts\]/m);
  assert.match(page({ mentions }), /^\| `name` \| no code reads it yet \| not proven yet \|$/m);
});

test("an example stands in the section of its component, with its file and path", () => {
  const example = { file: "examples/thing.yaml", path: "spec.left", yaml: "name: y\n" };
  assert.match(
    page({ examples: new Map([["Thing/Side", example]]) }),
    /From \[examples\/thing\.yaml\]\(\.\.\/\.\.\/examples\/thing\.yaml\), at `spec\.left`:\n\n```yaml\nname: y\n```/,
  );
});

for (const { kind, component } of kinds.kinds) {
  const text = readFileSync(join(FOLDER, `${kind.toLowerCase()}.md`), "utf8");

  test(`${kind}: every component has its section, and every field its row`, () => {
    const sections = new Map(text.split(/^### /m).map((part) => [part.slice(0, part.indexOf("\n")), part] as const));
    for (const { name, schema } of graph.reachable(component)) {
      if (!isStruct(schema)) {
        assert.ok(text.includes(`<a id="${name.toLowerCase()}"></a>`), name);
        continue;
      }
      for (const field of Object.keys(schema.properties ?? {})) {
        assert.ok(sections.get(name)?.includes(`| \`${field}\` |`), `${name}.${field}`);
      }
    }
  });

  test(`${kind}: no field that is proven is said to be unread, and each of them names a file`, () => {
    assert.deepEqual(text.match(/^.*no code reads it yet \| \[.*$/gm) ?? [], []);
    assert.deepEqual(text.match(/^\| `[^|]*` \| {2}\| \[.*$/gm) ?? [], []);
  });

  test(`${kind}: every link leads somewhere`, () => {
    const anchors = new Set([
      ...[...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
        title
          .toLowerCase()
          .replaceAll(/[^\w -]/g, "")
          .replaceAll(" ", "-"),
      ),
      ...[...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id),
    ]);
    const links = [...text.replaceAll(/(`+)[^\n]*?\1/g, "").matchAll(/\]\(([^)\s]+)\)/g)].map(
      ([, target = ""]) => target,
    );
    assert.ok(links.length > 10);
    const broken = new Set(
      links.filter((target) =>
        target.startsWith("#") ? !anchors.has(target.slice(1)) : !existsSync(join(FOLDER, target)),
      ),
    );
    assert.deepEqual([...broken], []);
  });
}
