/** A finding about one object, collected and never thrown; becomes a condition, or a line of `gwproxy validate`. */
import type { ObjectId } from "../api/object.ts";

export interface Diagnostic {
  readonly code: string;
  readonly severity: "error" | "warning";
  readonly object: ObjectId;
  /** Field path; "" for the object itself. */
  readonly path: string;
  readonly message: string;
}
