/**
 * Explains a field and its values with the descriptions of the schema. The directory source prints the text beside a
 * problem.
 */
import { ROOTS, COMPONENT_DOCS, type ComponentDocs } from "../../generated/field-docs.ts";

/**
 * @param groupKind group and kind such as "gwproxy.dev/GwPolicy"
 * @param path field path such as "spec.targetRefs[0].kind"
 * @returns sentences, most useful first; none for kinds of other projects and for unknown paths
 */
export function explain(groupKind: string, path: string): string[] {
  let here = COMPONENT_DOCS[ROOTS[groupKind] ?? ""];
  let sentences: string[] = [];
  let inMap = false;
  for (const step of path.split(/[.[\]]+/).filter((part) => part !== "")) {
    if (inMap || (/^\d+$/.test(step) && here?.fields?.[step] === undefined)) {
      inMap = false;
      continue;
    }
    const field = own(here?.fields, step);
    if (field === undefined) return here?.fields === undefined ? sentences : [fieldsOf(here)];
    const value = field.of === undefined ? undefined : COMPONENT_DOCS[field.of];
    sentences = [
      ...(field.about === "" ? [] : [`${step}: ${field.about}`]),
      // A component with fields is described at the field itself. The component of a scalar adds the form of its
      // values.
      ...(value === undefined || value.fields !== undefined || value.about === ""
        ? []
        : [`${field.of}: ${value.about}`]),
    ];
    here = value;
    inMap = field.map === true;
  }
  return sentences;
}

function fieldsOf({ fields = {} }: ComponentDocs): string {
  return `fields here: ${Object.keys(fields).join(", ")}`;
}

function own<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
}
