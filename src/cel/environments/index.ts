/**
 * The environments of expressions. Policies use REQUEST_ENVIRONMENT, narrowed per phase by phases.ts; admission runs CRD
 * rules in RULE_ENVIRONMENT.
 */
import { REQUEST_STEPS, RULE_STEPS } from "../budget.ts";
import type { Environment } from "../environment.ts";
import { functionTable } from "../function.ts";
import { GATEWAY_FUNCTIONS } from "../functions/gateway.ts";
import { KUBERNETES_FUNCTIONS } from "../functions/kubernetes.ts";
import { STANDARD_FUNCTIONS } from "../functions/standard.ts";
import { GATEWAY_MACROS } from "../macros/gateway.ts";
import { type CelType, DYN } from "../types.ts";
import { REQUEST_VARIABLES } from "./variables.ts";

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
