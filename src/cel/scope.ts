/**
 * What an expression can see. Roots are asked for by name and only when a running expression needs them, so that
 * a costly one (a body, a parsed token) is made at most once and only if it is read.
 */
export interface Scope {
  /** @returns undefined when the root does not exist here; selecting it is then an error of the expression. */
  root(name: string): unknown;
}
