/**
 * Describes a finding about one object. Diagnostics are collected and never thrown; each becomes a status condition or
 * a line of `gwproxy validate`.
 */
import type { ObjectId } from "../../api/object.ts";

export interface Diagnostic {
  readonly code: string;
  readonly severity: "error" | "warning";
  readonly object: ObjectId;
  /** Field path, or "" for the object itself. */
  readonly path: string;
  readonly message: string;
}
