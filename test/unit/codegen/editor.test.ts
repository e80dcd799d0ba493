/** The schemas for editors: they take what admission takes, and mark the place of what it refuses. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Ajv, type ValidateFunction } from "ajv";
import { parseAllDocuments } from "yaml";
import { KINDS } from "../../../generated/kinds.ts";
import { loadCases } from "../../crd-rules/load.ts";

const ROOT = join(import.meta.dirname, "../../..");
const OWN = KINDS.filter(({ owned }) => owned);
const compiled = new Map<string, ValidateFunction>();

/** @param file below generated/editor, without extension */
function schema(file: string): ValidateFunction {
  const known = compiled.get(file);
  if (known !== undefined) return known;
  const ajv = new Ajv({
    allErrors: true,
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allowUnionTypes: true,
  });
  const text = readFileSync(join(ROOT, "generated/editor", `${file}.json`), "utf8");
  const validate = ajv.compile(JSON.parse(text) as object);
  compiled.set(file, validate);
  return validate;
}

function faults(file: string, object: unknown): string[] {
  const validate = schema(file);
  if (validate(object)) return [];
  return (validate.errors ?? []).map(({ instancePath, keyword }) => `${instancePath} ${keyword}`);
}

function documents(
  pattern: string,
): { readonly file: string; readonly object: { kind: string; apiVersion: string } }[] {
  return globSync(pattern, { cwd: ROOT }).flatMap((file) =>
    parseAllDocuments(readFileSync(join(ROOT, file), "utf8"), { version: "1.1" }).map((document) => ({
      file,
      object: document.toJS() as { kind: string; apiVersion: string }, // our own manifests
    })),
  );
}

function policy(spec: object): object {
  return { apiVersion: "gwproxy.dev/v1alpha1", kind: "GwPolicy", metadata: { name: "p" }, spec };
}

const TARGET = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" };

test("each kind of ours has a schema of its own, in draft 7", () => {
  assert.ok(OWN.length >= 2);
  for (const { kind } of OWN) {
    assert.equal(typeof schema(kind.toLowerCase()), "function");
    const text = readFileSync(join(ROOT, "generated/editor", `${kind.toLowerCase()}.json`), "utf8");
    assert.match(text, /"\$schema": "http:\/\/json-schema.org\/draft-07\/schema#"/);
    assert.doesNotMatch(text, /x-gw-|x-kubernetes-/);
  }
});

test("every document of the examples is sound in the combined schema and in that of its kind", () => {
  const all = documents("examples/**/*.yaml");
  assert.ok(all.length > 5);
  for (const { file, object } of all) {
    assert.deepEqual(faults("all", object), [], `${file}: ${object.kind}`);
    const own = OWN.find(({ kind, group }) => kind === object.kind && object.apiVersion.startsWith(`${group}/`));
    if (own !== undefined) assert.deepEqual(faults(own.kind.toLowerCase(), object), [], `${file}: ${object.kind}`);
  }
});

test("what admission takes, the schema takes as well", () => {
  const sound = loadCases().filter(({ faults: expected }) => expected.length === 0);
  assert.ok(sound.length > 10);
  for (const { file, name, object } of sound) {
    const found = faults("all", object);
    // A null that is no value of its field is as good as nothing; others have to stay.
    assert.deepEqual(found.length === 0 ? found : faults("all", withoutNulls(object)), [], `${file}: ${name}`);
  }
});

test("every breach of a rule about how many of some fields may be set is marked", () => {
  const counted = loadCases().filter(({ faults: expected }) =>
    expected.some(({ message }) => / one of the fields in \[|conditional may not be set together with/.test(message)),
  );
  assert.ok(counted.length > 5);
  for (const { file, name, object } of counted) assert.notDeepEqual(faults("all", object), [], `${file}: ${name}`);
});

/** The API server drops a null before it looks; an editor marks it, and rightly so. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNulls(member)]));
}

test("two fields that exclude each other are marked at the one that is too many, and none is marked at the object", () => {
  const both = policy({ targetRefs: [TARGET], targetSelectors: [{ ...TARGET, name: undefined }], traffic: {} });
  assert.ok(faults("gwpolicy", both).includes("/spec/targetRefs false schema"));
  assert.ok(faults("gwpolicy", both).includes("/spec/targetSelectors false schema"));
  assert.ok(faults("gwpolicy", policy({ traffic: {} })).includes("/spec anyOf"));
});

test("unknown fields, wrong bounds, wrong enums and wrong patterns are marked at their place", () => {
  const wrong = policy({
    targetRefs: [TARGET],
    traffic: {
      timeout: {},
      phase: "Early",
      timeouts: { request: "5 s" },
      directResponse: { status: 700 },
    },
  });
  for (const file of ["gwpolicy", "all"]) {
    const found = faults(file, wrong);
    for (const place of [
      "/spec/traffic additionalProperties",
      "/spec/traffic/phase enum",
      "/spec/traffic/timeouts/request pattern",
      "/spec/traffic/directResponse/status maximum",
    ]) {
      assert.ok(found.includes(place), `${file}: ${place} is not among ${found.join(", ")}`);
    }
  }
});

test("a kind or a version that our group does not have is marked, and other groups pass", () => {
  assert.deepEqual(
    faults("all", { apiVersion: "gwproxy.dev/v1", kind: "GwPolicies", metadata: { name: "x" } }).slice(0, 2),
    ["/apiVersion const", "/kind enum"],
  );
  assert.deepEqual(faults("all", { apiVersion: "apps/v1", kind: "Deployment", whatever: true }), []);
});

test("descriptions, defaults and the words of rules are there for whoever hovers", () => {
  const text = readFileSync(join(ROOT, "generated/editor/gwpolicy.json"), "utf8");
  assert.match(text, /"default": "PostRouting"/);
  assert.match(text, /Rules:\\n- exactly one of the fields in \[targetRefs targetSelectors\] must be set/);
});

interface EditorSchema {
  readonly $ref?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, EditorSchema>>;
  readonly items?: EditorSchema;
  readonly additionalProperties?: EditorSchema | boolean;
  readonly allOf?: readonly EditorSchema[];
  readonly anyOf?: readonly EditorSchema[];
  readonly oneOf?: readonly EditorSchema[];
  readonly definitions?: Readonly<Record<string, EditorSchema>>;
}

/** As the YAML language server finds the text of a hover: the first of all schemas of the place, inner ones first. */
function hover(schema: EditorSchema, definitions: Readonly<Record<string, EditorSchema>>): string | undefined {
  if (schema.$ref !== undefined)
    return hover(definitions[schema.$ref.slice("#/definitions/".length)] ?? {}, definitions);
  for (const part of [...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) {
    const text = hover(part, definitions);
    if (text !== undefined) return text;
  }
  return schema.description;
}

for (const { kind } of OWN) {
  test(`whoever hovers over a field of a ${kind} reads the field's own words`, () => {
    const path = join(ROOT, "generated/editor", `${kind.toLowerCase()}.json`);
    const { definitions = {} } = JSON.parse(readFileSync(path, "utf8")) as EditorSchema;
    let fields = 0;
    for (const [component, { properties = {} }] of Object.entries(definitions)) {
      // What every object of Kubernetes has is known to who writes it.
      if (component === "ObjectMeta" || component === kind) continue;
      for (const [name, field] of Object.entries(properties)) {
        fields += 1;
        assert.ok(field.description !== undefined, `${component}.${name} has no words`);
        assert.equal(hover(field, definitions), field.description, `${component}.${name}`);
      }
    }
    assert.ok(fields > 20);
  });
}

test("a field that refers to a component has its own words, and the rules of the component", () => {
  const { definitions = {} } = JSON.parse(
    readFileSync(join(ROOT, "generated/editor/gwpolicy.json"), "utf8"),
  ) as EditorSchema;
  const hoverOf = (component: string, field: string): string =>
    hover(definitions[component]?.properties?.[field] ?? {}, definitions) ?? "";
  assert.equal(hoverOf("TargetRef", "name"), "Name of the target.");
  assert.match(hoverOf("Traffic", "timeouts"), /^How long a request may take\.(\n\nRules:|$)/);
  assert.match(hoverOf("GwPolicy", "spec"), /^What the policy says, and about what\.\n\nRules:\n- exactly one of/);
});
