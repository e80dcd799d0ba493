/** A compiled expression, as the compiler returns it to policies: a closure, its source text and what it reads. */
import type { Scope } from "./scope.ts";

export interface Expression {
  readonly source: string;
  readonly reads: Reads;
  /**
   * Evaluates the expression in a scope.
   *
   * @returns a plain value: null, boolean, bigint (int), number (double), string, Uint8Array, array, Map, or a value
   * class of values.ts (uint, timestamp, duration, type, flattened)
   * @throws CelError when the evaluation fails; each caller decides what a failure means
   */
  evaluate(scope: Scope): unknown;
}

/** The attributes that a program can read, found statically: the first two segments of each chain of selections. */
export interface Reads {
  /** Names of variables: "request", "jwt", … */
  readonly roots: ReadonlySet<string>;
  readonly requestBody: boolean;
  readonly responseBody: boolean;
  /** Paths such as "request.headers" and "llm.prompt", or "request.*" for a computed index. */
  readonly attributes: ReadonlySet<string>;
}
