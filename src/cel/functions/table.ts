/** Functions beside their signatures, as tables to look up by name and number of arguments. */
import type { CelFunction, FunctionEntry, FunctionTable } from "../environment.ts";
import { parseSignature } from "../signature.ts";

/** @see parseSignature for the notation */
export type Declaration = readonly [signature: string, call: CelFunction];

/** A later declaration of the same name and number of arguments replaces an earlier one. */
export function functionTable(declarations: readonly Declaration[]): FunctionTable {
  const table = new Map<string, FunctionEntry>();
  for (const [signature, call] of declarations) {
    const { key, overloads } = parseSignature(signature);
    table.set(key, { signature, call, overloads });
  }
  return table;
}
