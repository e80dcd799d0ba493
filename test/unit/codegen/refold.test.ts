/** Naming the shapes of a structural CRD must lose nothing: expanding them again yields the CRD. */
import assert from "node:assert/strict";
import { GATEWAY_API_KINDS, INFERENCE_KINDS } from "../../../codegen/gateway-api-version.ts";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { expand } from "../../../codegen/expand.ts";
import { createGraph } from "../../../codegen/graph.ts";
import { loadSchemas } from "../../../codegen/load.ts";
import { refold } from "../../../codegen/refold.ts";
import type { Component, Schema } from "../../../codegen/schema.ts";
import { foldUpstream, readUpstream, type UpstreamCrd } from "../../../codegen/upstream.ts";

const SCHEMAS = fileURLToPath(new URL("../../../crds/schemas/", import.meta.url));
let crds: readonly UpstreamCrd[];
let common: readonly Component[];

before(() => {
  crds = readUpstream();
  common = loadSchemas(SCHEMAS).components;
});

test("every CRD of the Gateway API and of its inference extension survives folding and expanding, key by key", () => {
  assert.deepEqual(
    crds.map(({ kind }) => kind),
    [...GATEWAY_API_KINDS, ...INFERENCE_KINDS].map(({ kind }) => kind),
  );
  for (const crd of crds) {
    const graph = createGraph([...common, ...foldUpstream(crd)]);
    const root = graph.get(crd.kind).schema;
    const { metadata: _, ...fields } = root.properties ?? {};
    const { metadata, ...upstream } = crd.schema.properties ?? {};
    assert.deepEqual(expand(graph, { ...root, properties: fields }), { ...crd.schema, properties: upstream });
    assert.deepEqual(metadata, { type: "object" }, "what is replaced says nothing");
  }
});

test("equal shapes fold into one type although their uses are described differently", () => {
  const pair = (description: string): Schema => ({
    type: "object",
    description,
    properties: { key: { type: "string", description: "The key." } },
  });
  const root: Schema = {
    type: "object",
    properties: { first: pair("One."), second: { type: "array", items: pair("Two.") } },
  };
  const components = refold("Thing", "thing", root, {});
  assert.deepEqual(
    components.map(({ name }) => name),
    ["Thing", "ThingFirst"],
  );
  const graph = createGraph(components);
  assert.deepEqual(expand(graph, graph.get("Thing").schema), root);
});

test("different shapes at fields of one name get longer names, and chosen names win", () => {
  const of = (field: string): Schema => ({ type: "object", properties: { [field]: { type: "string" } } });
  const root: Schema = {
    type: "object",
    properties: {
      left: { type: "object", properties: { ref: of("a") } },
      right: { type: "object", properties: { ref: of("b") } },
    },
  };
  const names = refold("Thing", "thing", root, { left: "LeftSide" }).map(({ name }) => name);
  assert.deepEqual(names.sort(), ["LeftSide", "Thing", "ThingLeftRef", "ThingRight", "ThingRightRef"]);
});
