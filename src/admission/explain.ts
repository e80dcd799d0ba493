/** What a field is for and what its values look like, in the words of the schema: said beside a fault. */
import { ROOTS, WORDS, type Words } from "../../generated/words.ts";

/**
 * @param groupKind "gwproxy.dev/GwPolicy" @param path "spec.targetRefs[0].kind"
 * @returns sentences, most useful first; none for kinds that are not ours and for paths that nothing is known of
 */
export function explain(groupKind: string, path: string): string[] {
  let here = WORDS[ROOTS[groupKind] ?? ""];
  let sentences: string[] = [];
  let inMap = false;
  for (const step of path.split(/[.[\]]+/).filter((part) => part !== "")) {
    if (inMap || (/^\d+$/.test(step) && here?.fields?.[step] === undefined)) {
      inMap = false;
      continue;
    }
    const field = own(here?.fields, step);
    if (field === undefined) return here?.fields === undefined ? sentences : [fieldsOf(here)];
    const value = field.of === undefined ? undefined : WORDS[field.of];
    sentences = [
      ...(field.about === "" ? [] : [`${step}: ${field.about}`]),
      // The component of a value that has fields is described at the field; a scalar says here what it looks like.
      ...(value === undefined || value.fields !== undefined || value.about === ""
        ? []
        : [`${field.of}: ${value.about}`]),
    ];
    here = value;
    inMap = field.map === true;
  }
  return sentences;
}

function fieldsOf({ fields = {} }: Words): string {
  return `fields here: ${Object.keys(fields).join(", ")}`;
}

function own<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
}
