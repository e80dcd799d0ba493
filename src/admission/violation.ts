/**
 * One thing that is wrong with one object, in the words of the Kubernetes API server. Violations are collected, never
 * thrown.
 */
export interface Violation {
  /** Field path such as "spec.traffic.rateLimit.local[0].unit"; "" for the object itself. */
  readonly path: string;
  readonly severity: "error" | "warning";
  /** Cause as the API server names it: "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported", … */
  readonly reason: string;
  readonly message: string;
  /**
   * Start of the error within the text at `path`, in UTF-16 code units from 0; undefined when the whole value is wrong.
   */
  readonly offset?: number;
  /** Suggests a correction ("did you mean `timeouts`?") or the next step; "" when there is none. */
  readonly suggestion: string;
}
