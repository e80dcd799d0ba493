import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createGraph, type SchemaGraph } from "../../../../codegen/graph.ts";
import { loadSchemas } from "../../../../codegen/load.ts";
import { fieldGroups, type Schema } from "../../../../codegen/schema.ts";
import { objectId, type KubeObject } from "../../../../src/api/object.ts";
import { createTranslator } from "../../../../src/translator/translate.ts";
import { findUnserved } from "../../../fields/not-served.ts";
import type { Step } from "../../../../src/lib/track-access.ts";
import { unsupportedFields } from "../../../../src/translator/shared/unsupported-fields.ts";

const POLICY = "gwproxy.dev/GwPolicy";
const at = (...path: Step[]) => ({ path, value: true });

test("a field is written as a path, and part of what protects protects", () => {
  const unread = [
    at("spec", "traffic", "hostRewrite"),
    at("spec", "traffic", "rateLimit", "conditional", 0, "policy", "global"),
  ];
  assert.deepEqual(
    unsupportedFields(POLICY, unread, []).map(({ path, failsClosed }) => [path, failsClosed]),
    [
      ["spec.traffic.hostRewrite", false],
      ["spec.traffic.rateLimit.conditional[0].policy.global", true],
    ],
  );
});

test("a whole section protects when it holds something that does", () => {
  const protects = (value: object): boolean[] =>
    unsupportedFields(POLICY, [{ path: ["spec", "frontend"], value }], []).map((field) => field.failsClosed);
  assert.deepEqual(protects({ tls: {}, accessLog: {} }), [true]);
  assert.deepEqual(protects({ http: { http1MaxHeaders: 7 } }), [true]);
  assert.deepEqual(protects({ http: { http1HeaderCase: "Preserve" }, accessLog: {} }), [false]);
});

test("a reported fault accounts for what lies below it and for nothing beside it", () => {
  const unread = [
    at("spec", "traffic", "retry", "codes"),
    at("spec", "traffic", "retryAll"),
    at("spec", "traffic", "local", 0),
  ];
  const faults = ["spec.traffic.retry", "spec.traffic.local"];
  assert.deepEqual(
    unsupportedFields(POLICY, unread, faults).map(({ path }) => path),
    ["spec.traffic.retryAll"],
  );
});

test("the status of an object names each field of the README's list that the object sets", () => {
  const { components, kinds } = loadSchemas(join(ROOT, "crds/schemas/"));
  const graph = createGraph(components);
  const proven = new Set(readProofs(readFileSync(join(ROOT, "docs/reference/fields.md"), "utf8")));
  const parts = findUnserved(graph, kinds, proven, { hasKind: () => true, hasFormat: () => true });
  const silent = parts.flatMap(({ kind, places, entries }) =>
    kind === "GwModel" || kind === "GwParameters"
      ? []
      : places.flatMap((place) => entries.map(({ name }) => `${place}.${name}`)).filter((path) => !isNamed(kind, path)),
  );
  assert.deepEqual(silent, []);
  const none = findUnserved(graph, kinds, new Set(), { hasKind: () => true, hasFormat: () => true });
  assert.ok(none.length > 0, "without proofs the list is not empty");

  function isNamed(kind: string, path: string): boolean {
    const object = {
      apiVersion: "gwproxy.dev/v1alpha1",
      kind,
      metadata: { name: "it", namespace: "default" },
      spec: sampleWith(graph, { $ref: `${kind}Spec` }, path.split(".").slice(1)),
    };
    const translator = createTranslator({ controllerName: "gwproxy.dev/gwproxy", implicitClass: "gwproxy" });
    // Made from the schema of its kind.
    translator.apply([GATEWAY, object].map((each) => ({ type: "set", object: each as KubeObject })));
    const wanted = path.replaceAll("[]", "[0]");
    return [...diagnosticsIn(translator.statusInput(objectId(object as KubeObject)))].some(
      ({ path: at, message }) => at === wanted && /does not (?:enforce|serve)|is not served/.test(message),
    );
  }
});

/** Everything in the facts of an object that has the path of a field and a message. */
function* diagnosticsIn(value: unknown): Generator<{ readonly path: string; readonly message: string }> {
  if (typeof value !== "object" || value === null) return;
  if ("path" in value && typeof value.path === "string" && "message" in value)
    yield { path: value.path, message: String(value.message) };
  for (const child of Object.values(value)) yield* diagnosticsIn(child);
}

const ROOT = join(import.meta.dirname, "../../../..");

const GATEWAY = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "gw", namespace: "default" },
  spec: { gatewayClassName: "gwproxy", listeners: [{ name: "http", port: 80, protocol: "HTTP" }] },
};

/** "Kind path" of each row of the ledger that names a test. */
function* readProofs(page: string): Generator<string> {
  for (const section of page.split("\n## ").slice(1)) {
    const kind = section.slice(0, section.indexOf("\n"));
    for (const [, path] of section.matchAll(/^\| `([^`]+)` \| (?!not proven yet)/gm)) yield `${kind} ${path}`;
  }
}

/** A small value of the schema in which the field at the path is set; lists have one item. */
function sampleWith(graph: SchemaGraph, site: Schema, [step, ...rest]: readonly string[]): unknown {
  const schema = graph.resolve(site);
  if (schema.items !== undefined) return [sampleWith(graph, schema.items, step === undefined ? [] : [step, ...rest])];
  if (schema.properties === undefined) return sampleScalar(schema);
  const needed = [...(schema.required ?? []), ...(schema["x-gw-exactly-one-of"] ?? []).flat().slice(0, 1)];
  const field = step?.replaceAll("[]", "");
  const names = new Set([
    ...needed.filter((name) => !isExcluded(schema, name, field)),
    ...(field === undefined ? [] : [field]),
  ]);
  return Object.fromEntries(
    [...names].map((name) => [name, sampleWith(graph, schema.properties?.[name] ?? {}, name === field ? rest : [])]),
  );
}

/** Whether the wanted field takes the place of this one. */
function isExcluded(schema: Schema, name: string, wanted: string | undefined): boolean {
  const groups = fieldGroups(schema, "x-gw-exactly-one-of");
  return groups.some(
    (group) => wanted !== undefined && wanted !== name && group.includes(name) && group.includes(wanted),
  );
}

function sampleScalar({ enum: values, default: fallback, type, minimum }: Schema): unknown {
  if (fallback !== undefined) return fallback;
  if (values !== undefined) return values[0];
  if (type === "string") return "x";
  return type === "boolean" ? true : type === "object" ? {} : (minimum ?? 1);
}
