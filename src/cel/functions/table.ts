/** Builds function tables, keyed by name and number of arguments, from declarations with a signature. */
import type { CelFunction, FunctionEntry, FunctionTable } from "../environment.ts";
import { parseSignature } from "../signature.ts";

/** A signature in the notation of parseSignature, and its implementation. */
export type Declaration = readonly [signature: string, call: CelFunction];

/** Builds a table. A later declaration replaces an earlier one with the same name and number of arguments. */
export function functionTable(declarations: readonly Declaration[]): FunctionTable {
  const table = new Map<string, FunctionEntry>();
  for (const [signature, call] of declarations) {
    const { key, overloads } = parseSignature(signature);
    table.set(key, { signature, call, overloads });
  }
  return table;
}
