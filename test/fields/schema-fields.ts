/** Every leaf field of our CRDs, as "Kind path": what a user can write and a test has to prove. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
}

interface Crd {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[];
  };
}

export function schemaFields(root: string): string[] {
  return globSync("crds/*.yaml", { cwd: root })
    .sort()
    .flatMap((file) => {
      // Our own generated files; the API server is the judge of their shape.
      const crd = parse(readFileSync(join(root, file), "utf8")) as Crd;
      const spec = crd.spec.versions[0]?.schema.openAPIV3Schema.properties?.["spec"];
      return spec === undefined ? [] : leaves(spec, "spec").map((path) => `${crd.spec.names.kind} ${path}`);
    });
}

function leaves(schema: Schema, path: string): string[] {
  if (schema.properties !== undefined) {
    const below = Object.entries(schema.properties).flatMap(([name, child]) => leaves(child, `${path}.${name}`));
    return below.length > 0 ? below : [path];
  }
  if (schema.items !== undefined) return leaves(schema.items, `${path}[]`);
  return [path];
}
