/** Writes the CRDs: one structural document each, within the budget of bytes that plain `kubectl apply` can take. */
import { stringify } from "yaml";
import { spendDescriptions } from "../budget.ts";
import { expand, sorted } from "../expand.ts";
import type { SchemaGraph } from "../graph.ts";
import type { KindEntry, KindsFile } from "../load.ts";
import { header } from "../print.ts";
import type { Schema } from "../schema.ts";
import { slim } from "../slim.ts";

const STANDARD_FIELDS: Readonly<Record<string, Schema>> = {
  apiVersion: { type: "string", description: "Version of the schema that this object is written in." },
  kind: { type: "string", description: "Kind of the object." },
  metadata: { type: "object" },
};

/** @returns text by path below crds */
export function emitCrds(graph: SchemaGraph, kinds: KindsFile): Map<string, string> {
  return new Map(
    kinds.kinds.map((entry) => {
      const crd = crdOf(graph, kinds, entry);
      // kubectl reads YAML 1.1, in which Off and y are truth values: they need quotes.
      const text = stringify(crd, { version: "1.1", lineWidth: 120, aliasDuplicateObjects: false });
      return [`${kinds.group}_${entry.plural}.yaml`, header("#", "crds/schemas") + text];
    }),
  );
}

/** The CRD as an object, descriptions within budget. */
export function crdOf(graph: SchemaGraph, kinds: KindsFile, entry: KindEntry): object {
  const root = slim(expand(graph, graph.get(entry.component).schema));
  const schema = sorted({ ...root, properties: { ...root.properties, ...STANDARD_FIELDS } });
  const overhead = Buffer.byteLength(JSON.stringify(document(kinds, entry, {}))) - "{}".length;
  return document(kinds, entry, sorted(spendDescriptions(entry.kind, schema, overhead).schema));
}

function document({ group, version }: KindsFile, entry: KindEntry, schema: Schema): object {
  const { kind, plural, singular, list, shortNames, categories, labels, columns } = entry;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}`, labels },
    spec: {
      group,
      names: { kind, listKind: list, plural, singular, shortNames, categories },
      scope: "Namespaced",
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          additionalPrinterColumns: columns,
          schema: { openAPIV3Schema: schema },
          subresources: { status: {} },
        },
      ],
    },
  };
}
