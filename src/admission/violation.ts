/** One fault of one object, in the words of the Kubernetes API server. Collected, never thrown. */
export interface Violation {
  /** "spec.traffic.rateLimit.local[0].unit"; "" for the object itself. */
  readonly path: string;
  readonly severity: "error" | "warning";
  /** The API server's cause: "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported", … */
  readonly reason: string;
  readonly message: string;
  /** "did you mean `timeouts`?", or the next step; "" when there is none. */
  readonly suggestion: string;
}
