/**
 * The attributes that an expression can read. The data plane implements a Scope per request; tests and admission pass
 * small ones. Roots are requested by name, and only when a running expression needs them, so that a costly one (a body,
 * a parsed token) is computed at most once and only if an expression reads it.
 */
export interface Scope {
  /** @returns undefined when the root does not exist here; selecting it then makes the expression fail. */
  root(name: string): unknown;
}
