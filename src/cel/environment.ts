/**
 * The environments of expressions: which variables with which fields, which functions and which macros an expression
 * may use. Policies use REQUEST_ENVIRONMENT, narrowed per phase by phases.ts; admission runs CRD rules in
 * RULE_ENVIRONMENT.
 */
import { REQUEST_STEPS, RULE_STEPS, type Run } from "./budget.ts";
import { GATEWAY_MACROS } from "./functions/gateway-macros.ts";
import { GATEWAY_FUNCTIONS } from "./functions/gateway.ts";
import { KUBERNETES_FUNCTIONS } from "./functions/kubernetes.ts";
import { STANDARD_FUNCTIONS } from "./functions/standard.ts";
import { functionTable } from "./functions/table.ts";
import type { MacroTable } from "./compile/macro-table.ts";
import type { Overload } from "./signature.ts";
import { type CelType, DYN } from "./types.ts";
import { REQUEST_VARIABLES } from "./variables.ts";

export type CelFunction = (run: Run, ...args: unknown[]) => unknown;

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

/** Environment of policy expressions: all that a request, its route, its backend and its response offer. */
export const REQUEST_ENVIRONMENT: Environment = {
  variables: REQUEST_VARIABLES,
  functions: functionTable([...STANDARD_FUNCTIONS, ...GATEWAY_FUNCTIONS]),
  macros: GATEWAY_MACROS,
  steps: REQUEST_STEPS,
  optionalSyntax: false,
  substringIn: true,
  escapedFields: false,
  container: "",
};

/** Environment of CRD validation rules (x-kubernetes-validations), as the Kubernetes API server runs them. */
export const RULE_ENVIRONMENT: Environment = {
  variables: new Map<string, CelType>([
    ["self", DYN],
    ["oldSelf", DYN],
  ]),
  functions: functionTable([...STANDARD_FUNCTIONS, ...KUBERNETES_FUNCTIONS]),
  macros: new Map(),
  steps: RULE_STEPS,
  optionalSyntax: true,
  substringIn: false,
  escapedFields: true,
  container: "",
};
