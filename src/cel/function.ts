/**
 * What a function of the language is: its implementation, its signature, and the table that the checker and the compiler
 * look it up in. Each file of functions/ declares some; an Environment holds the table.
 */
import type { Run } from "./budget.ts";
import { parseSignature, type Overload } from "./signature.ts";

export type CelFunction = (run: Run, ...args: unknown[]) => unknown;

/** A signature in the notation of parseSignature, and its implementation. */
export type Declaration = readonly [signature: string, call: CelFunction];

export interface FunctionEntry {
  /** The signature as it is written beside the function; the reference page prints it. */
  readonly signature: string;
  readonly call: CelFunction;
  /**
   * Types for the checker. The function itself still rejects values of other types, because unchecked programs call it
   * too.
   */
  readonly overloads: readonly Overload[];
}

/** Keys are those of Signature: "name/arity", ".name/arity" or "name/*". */
export type FunctionTable = ReadonlyMap<string, FunctionEntry>;

/** Builds a table. A later declaration replaces an earlier one with the same name and number of arguments. */
export function functionTable(declarations: readonly Declaration[]): FunctionTable {
  const table = new Map<string, FunctionEntry>();
  for (const [signature, call] of declarations) {
    const { key, overloads } = parseSignature(signature);
    table.set(key, { signature, call, overloads });
  }
  return table;
}
