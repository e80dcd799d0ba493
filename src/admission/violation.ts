/** One fault of one object, in the words of the Kubernetes API server. Collected, never thrown. */
export interface Violation {
  /** "spec.traffic.rateLimit.local[0].unit"; "" for the object itself. */
  readonly path: string;
  readonly severity: "error" | "warning";
  /** The API server's cause: "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported", … */
  readonly reason: string;
  readonly message: string;
  /** Where in the text at `path` the fault is, in UTF-16 units from 0; undefined when all of it is at fault. */
  readonly offset?: number;
  /** "did you mean `timeouts`?", or the next step; "" when there is none. */
  readonly suggestion: string;
}
