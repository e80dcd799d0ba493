/** Writes unions.ts: for each exactly-one-of the names of its members and a function that says which one is set. */
import type { SchemaGraph } from "../graph.ts";
import { compare, header } from "../print.ts";
import { fieldGroups } from "../schema.ts";

export function emitUnions(graph: SchemaGraph, place: (file: string) => string): string {
  const unions = [...graph.components.values()]
    .flatMap(({ name, file, schema }) => {
      // Groups that come from an included component have the accessor of that component.
      const [members] = fieldGroups(schema, "x-gw-exactly-one-of");
      return members === undefined ? [] : [{ name, file, members }];
    })
    .sort((a, b) => compare(a.name, b.name));
  const imports = new Map<string, string[]>();
  for (const { name, file } of unions) imports.set(file, [...(imports.get(file) ?? []), name]);
  const lines = [...imports]
    .sort(([a], [b]) => compare(a, b))
    .map(([file, names]) => `import type { ${names.join(", ")} } from "./types/${place(file)}.ts";\n`);
  return `${header("//", "crds/schemas")}${lines.join("")}${unions.map(unionOf).join("")}`;
}

function unionOf({ name, members }: { readonly name: string; readonly members: readonly string[] }): string {
  const kinds = members.map((member) => JSON.stringify(member)).join(" | ");
  return `
export type ${name}Kind = ${kinds};

/** Which of the members that exclude each other is set. Admission guarantees exactly one. */
export function kindOf${name}(value: ${name}): ${name}Kind {
${members.map((member) => `  if (value.${member} !== undefined) return ${JSON.stringify(member)};\n`).join("")}\
  throw new TypeError("${name}: none of ${members.join(", ")} is set");
}
`;
}
