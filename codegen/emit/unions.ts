/**
 * Writes unions.ts: for each exactly-one-of and at-most-one-of, the names of its members and a function that returns
 * the member that is set. A switch over the names stops the build when a member is added.
 */
import type { SchemaGraph } from "../graph.ts";
import { compare, header } from "../print.ts";
import { fieldGroups, type Component } from "../schema.ts";

interface Union {
  readonly name: string;
  readonly file: string;
  readonly members: readonly string[];
  /** Whether one member is always set. */
  readonly exactly: boolean;
}

export function emitUnions(graph: SchemaGraph, place: (file: string) => string): string {
  const unions = [...graph.components.values()].flatMap(unionOf).sort((a, b) => compare(a.name, b.name));
  const imports = new Map<string, string[]>();
  for (const { name, file } of unions) imports.set(file, [...(imports.get(file) ?? []), name]);
  const lines = [...imports]
    .sort(([a], [b]) => compare(a, b))
    .map(([file, names]) => `import type { ${names.join(", ")} } from "./types/${place(file)}.ts";\n`);
  return `${header("//", "crds/schemas")}${lines.join("")}${unions.map(print).join("")}`;
}

/**
 * Returns the union of a component's own group; groups of an included component have the accessor of that component.
 */
function unionOf({ name, file, schema }: Component): Union[] {
  const [exactly] = fieldGroups(schema, "x-gw-exactly-one-of");
  const [atMost] = fieldGroups(schema, "x-gw-at-most-one-of");
  if (exactly !== undefined) return [{ name, file, members: exactly, exactly: true }];
  return atMost === undefined ? [] : [{ name, file, members: atMost, exactly: false }];
}

function print({ name, members, exactly }: Union): string {
  const kinds = members.map((member) => JSON.stringify(member)).join(" | ");
  const promise = exactly ? "Admission guarantees exactly one." : "Admission guarantees at most one.";
  const none = exactly ? `throw new TypeError("${name}: none of ${members.join(", ")} is set");` : "return undefined;";
  return `
export type ${name}Kind = ${kinds};

/** Which of the members that exclude each other is set. ${promise} */
export function kindOf${name}(value: ${name}): ${name}Kind${exactly ? "" : " | undefined"} {
${members.map((member) => `  if (value.${member} !== undefined) return ${JSON.stringify(member)};\n`).join("")}\
  ${none}
}
`;
}
