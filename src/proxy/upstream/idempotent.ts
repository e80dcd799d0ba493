/** Methods whose request may arrive twice without harm (RFC 9110 §9.2.2). */
export const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);
