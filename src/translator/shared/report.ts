/**
 * Reports what is wrong with one field of an object. Translators get a reporter from whoever knows the object, and put
 * the path of each block before it.
 */
import type { Diagnostic } from "./diagnostics.ts";

/** Records a diagnostic about one field. @param severity defaults to the usual severity of the caller's field */
export type Report = (path: string, message: string, severity?: Diagnostic["severity"]) => void;

/** Returns a reporter that puts `prefix` before each path, which may begin with the index of a list, "[0]". */
export function within(report: Report, prefix: string): Report {
  return (path, message, severity) => report(joinPath(prefix, path), message, severity);
}

function joinPath(prefix: string, path: string): string {
  return path === "" || path.startsWith("[") ? prefix + path : `${prefix}.${path}`;
}
