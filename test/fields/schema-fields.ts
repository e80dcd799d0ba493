/** Every leaf field of our CRDs, as "Kind path": what a user can write and a test has to prove. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

/** What a value can be too little, too much or the wrong one of: its proof has to fail with another value. */
type Scale = "duration" | "number" | "enum" | "boolean";

export interface SchemaField {
  /** "GwPolicy spec.targetRefs[].name" */
  readonly field: string;
  /** undefined for texts, lists of texts and maps */
  readonly scale: Scale | undefined;
}

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly "x-kubernetes-int-or-string"?: boolean;
}

interface Crd {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[];
  };
}

export function schemaFields(root: string): SchemaField[] {
  return globSync("crds/*.yaml", { cwd: root })
    .sort()
    .flatMap((file) => {
      // Our own generated files; the API server is the judge of their shape.
      const crd = parse(readFileSync(join(root, file), "utf8")) as Crd;
      const spec = crd.spec.versions[0]?.schema.openAPIV3Schema.properties?.["spec"];
      return spec === undefined ? [] : leaves(spec, `${crd.spec.names.kind} spec`);
    });
}

function leaves(schema: Schema, field: string): SchemaField[] {
  if (schema.properties !== undefined) {
    const below = Object.entries(schema.properties).flatMap(([name, child]) => leaves(child, `${field}.${name}`));
    return below.length > 0 ? below : [{ field, scale: undefined }];
  }
  if (schema.items !== undefined) return leaves(schema.items, `${field}[]`);
  return [{ field, scale: scaleOf(schema, field) }];
}

function scaleOf(schema: Schema, field: string): Scale | undefined {
  if (schema.enum !== undefined) return schema.enum.length > 1 ? "enum" : undefined;
  if (schema.type === "integer" || schema.type === "number" || schema["x-kubernetes-int-or-string"]) return "number";
  if (schema.type === "boolean") return "boolean";
  // Some take an expression as well, which leaves no trace in the CRD but the name.
  return schema.pattern?.includes("(h|m|s|ms)") || /(?:duration|ttl|timeout)$/i.test(field) ? "duration" : undefined;
}
