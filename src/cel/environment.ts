/**
 * What an expression may use: variables with their fields, functions, macros, and the options of the syntax. The checker
 * and the compiler work in one environment; environments/ has those that exist.
 */
import type { FunctionTable } from "./function.ts";
import type { MacroTable } from "./macro.ts";
import type { CelType } from "./types.ts";

export interface Environment {
  readonly variables: ReadonlyMap<string, CelType>;
  readonly functions: FunctionTable;
  /**
   * Macros beyond the standard ones; they have scoping or error rules of their own. Keys are those of a FunctionTable.
   */
  readonly macros: MacroTable;
  readonly steps: number;
  /** Allows `a.?b`, `a[?b]` and optional entries. */
  readonly optionalSyntax: boolean;
  /** Makes `"a" in "abc"` test for a substring. */
  readonly substringIn: boolean;
  /** Unescapes property names that are not CEL identifiers, which are written `__dash__`, `__namespace__`, … */
  readonly escapedFields: boolean;
  /** Namespace in which names are resolved first; "" when there is none. */
  readonly container: string;
}
