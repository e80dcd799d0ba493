/** Lines that `up` and `validate` print: faults with their place, and what a change did. */
import type { ResourceUpdate } from "../../ir/resource.ts";
import type { SourceProblem } from "../../sources/source.ts";

/** A problem as programs read it. */
export function rowOf(problem: SourceProblem): SourceProblem {
  const { file, line, column, object, path, severity, message, suggestion, effect } = problem;
  const row = { file, line, column, object, path, severity, message, suggestion };
  return effect === undefined ? row : { ...row, effect };
}

/** file:line:column: error: GwPolicy default/x: spec.traffic: message (suggestion); kept: GwPolicy default/x as accepted before */
export function problemLine(problem: SourceProblem): string {
  const { file, line, column, object, path, severity, message, suggestion, effect } = problem;
  const place = file === "" ? "" : `${file}:${line}:${column}: `;
  const subject = [object, path]
    .filter((part) => part !== "")
    .map((part) => `${part}: `)
    .join("");
  return `${place}${severity}: ${subject}${message}${suggestion === "" ? "" : ` (${suggestion})`}${effect === undefined ? "" : `; ${effect}`}`;
}

/** The objects behind an update, each once: "HttpRoute httproute/default/hello". */
export function changedNames(update: ResourceUpdate): { readonly set: string[]; readonly removed: string[] } {
  return {
    set: [...new Set(update.set.map(({ type, key }) => `${type} ${key}`))],
    removed: [...new Set(update.removed.map(({ type, key }) => `${type} ${key}`))],
  };
}
