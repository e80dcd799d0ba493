/**
 * Writes the CRDs in two sets that differ only in their descriptions: crds/ within the size that plain `kubectl apply`
 * accepts, crds/documented/ with every description, for `kubectl apply --server-side` and charts.
 */
import { stringify } from "yaml";
import { trimDescriptions } from "../budget.ts";
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

/** Folder below crds/ of the set with all descriptions. */
export const DOCUMENTED = "documented";

/** @returns text by path below crds */
export function emitCrds(graph: SchemaGraph, kinds: KindsFile): Map<string, string> {
  const files = new Map<string, string>();
  for (const entry of kinds.kinds) {
    const { trimmed, documented } = buildCrds(graph, kinds, entry);
    const name = `${kinds.group}_${entry.plural}.yaml`;
    files.set(name, print(trimmed));
    files.set(`${DOCUMENTED}/${name}`, print(documented));
  }
  return files;
}

/** Prints YAML 1.1, which kubectl reads: Off and y are booleans in it and need quotes. */
function print(crd: object): string {
  return header("#", "crds/schemas") + stringify(crd, { version: "1.1", lineWidth: 120, aliasDuplicateObjects: false });
}

/** Builds both forms of the CRD of one kind. */
function buildCrds(
  graph: SchemaGraph,
  kinds: KindsFile,
  entry: KindEntry,
): { readonly trimmed: object; readonly documented: object } {
  const root = slim(expand(graph, graph.get(entry.component).schema));
  const schema = sorted({ ...root, properties: { ...root.properties, ...STANDARD_FIELDS } });
  const overhead = Buffer.byteLength(JSON.stringify(document(kinds, entry, {}))) - "{}".length;
  const trimmed = sorted(trimDescriptions(entry.kind, schema, overhead).schema);
  return { trimmed: document(kinds, entry, trimmed), documented: document(kinds, entry, schema) };
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
