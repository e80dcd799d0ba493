/** Reports diagnostics about the fields of one block, by their paths within it. */
import type { Diagnostic } from "./diagnostics.ts";

/** Records a diagnostic about one field. @param severity defaults to the usual severity of the caller's field */
export type Report = (path: string, message: string, severity?: Diagnostic["severity"]) => void;

/** Returns a reporter that puts `prefix` before each path. */
export function within(report: Report, prefix: string): Report {
  return (path, message, severity) => report(path === "" ? prefix : `${prefix}.${path}`, message, severity);
}
