/** A compiled expression: a closure, the text it came from, and what it reads. */
import type { Scope } from "./scope.ts";

export interface Expression {
  readonly source: string;
  readonly reads: Reads;
  /**
   * @returns a plain value: null, boolean, bigint (int), number (double), string, Uint8Array, array, Map, or a value
   * of this room (uint, timestamp, duration, type, flattened)
   * @throws CelError when evaluation fails; the caller's own rule says what that means
   */
  evaluate(scope: Scope): unknown;
}

/** Which attributes a program can touch, found statically: the first two segments of each member chain. */
export interface Reads {
  /** "request", "jwt", … */
  readonly roots: ReadonlySet<string>;
  readonly requestBody: boolean;
  readonly responseBody: boolean;
  /** "request.headers", "llm.prompt", … and "request.*" for a non-constant index. */
  readonly attributes: ReadonlySet<string>;
}
