/** What an expression may name: variables with their known fields, and functions. One environment per place of use. */
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
  /** As it is written beside the function, for people. */
  readonly signature: string;
  readonly call: CelFunction;
  /** What it takes and gives, for checks; the function itself refuses everything else too. */
  readonly overloads: readonly Overload[];
}

/** Keys as in Signature. */
export type FunctionTable = ReadonlyMap<string, FunctionEntry>;

export interface Environment {
  readonly variables: ReadonlyMap<string, CelType>;
  readonly functions: FunctionTable;
  /** Forms with their own scoping or error rules, beyond the standard macros. Keys as in a FunctionTable. */
  readonly macros: MacroTable;
  readonly steps: number;
  /** `a.?b`, `a[?b]` and optional entries. */
  readonly optionalSyntax: boolean;
  /** `"a" in "abc"` asks for a substring. */
  readonly substringIn: boolean;
  /** Property names that no CEL name can spell are written `__dash__`, `__namespace__`, … */
  readonly escapedFields: boolean;
  /** Namespace in which names are looked up first; "" for none. */
  readonly container: string;
}

/** Expressions of policies: everything that a request, its route, its backend and its answer offer. */
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

/** Validation rules of custom resource definitions, as the Kubernetes API server runs them. */
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
