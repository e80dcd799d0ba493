/** Idempotent methods: such a request may arrive twice without harm (RFC 9110 §9.2.2). Both HTTP clients consult it. */
export const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);
