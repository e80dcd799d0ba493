/**
 * Writes ValidatingAdmissionPolicies for clusters that forbid webhooks. They contain the part of the webhook's checks
 * beyond the CRDs that CEL on the API server can express; the head of the generated file lists the rest.
 */
import { stringify } from "yaml";
import { celField } from "../lower.ts";
import type { SchemaGraph } from "../graph.ts";
import type { KindsFile } from "../load.ts";
import { header } from "../print.ts";
import type { Schema } from "../schema.ts";

interface Validation {
  readonly expression: string;
  readonly message: string;
  readonly reason: "Invalid";
}

/** Builds an expression about a value; it is true when the value is valid. */
type Leaf = (value: string) => string;

interface Check {
  readonly leaf: Leaf;
  readonly message: (path: string) => string;
  readonly action: "Deny" | "Warn";
}

const HEAD = `# For clusters that cannot run the webhook: kubectl apply -f this file after the CRDs. It rejects invalid patterns and
# duplicate names in htpasswd lists, and warns about header names that the gateway reserves.
#
# Only the webhook and \`gwproxy validate\` check:
# - that an expression compiles and that its variables exist in its phase; otherwise it fails at run time, which denies,
#   and the status of the object reports it
# - that the repetitions of a pattern do not make it too large to compile
# - unknown field names, where a client asks the API server to ignore them
# They also suggest corrections, whereas these messages only name the field and the rule.
`;

/** @returns the text of the bundle */
export function emitAdmissionPolicy(graph: SchemaGraph, kinds: KindsFile): string {
  const documents = kinds.kinds.flatMap(({ component, plural }) => {
    const spec = graph.get(component).schema.properties?.["spec"];
    if (spec === undefined) return [];
    const found = [...validationsAt(graph, spec, [])];
    return (["Deny", "Warn"] as const).flatMap((action) => {
      const validations = found.filter((one) => one.action === action).map(({ validation }) => validation);
      return validations.length === 0 ? [] : policyAndBinding(kinds, { plural, action, validations });
    });
  });
  return `${header("#", "crds/schemas")}${HEAD}${documents.map((one) => `---\n${stringify(one, { lineWidth: 120 })}`).join("")}`;
}

/** One step from `spec` to a value: a field that may be missing, each item of a list, or each value of a map. */
interface Step {
  readonly kind: "field" | "items" | "values";
  readonly name: string;
}

function* validationsAt(
  graph: SchemaGraph,
  site: Schema,
  steps: readonly Step[],
): Generator<{ readonly action: "Deny" | "Warn"; readonly validation: Validation }> {
  const schema = graph.resolve(site);
  for (const { leaf, message, action } of checksOf(graph, schema)) {
    const expression = nested("object.spec", steps, leaf);
    yield { action, validation: { expression, message: message(pathOf(steps)), reason: "Invalid" } };
  }
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    yield* validationsAt(graph, child, [...steps, { kind: "field", name }]);
  }
  if (schema.items !== undefined) yield* validationsAt(graph, schema.items, [...steps, { kind: "items", name: "" }]);
  if (typeof schema.additionalProperties === "object") {
    yield* validationsAt(graph, schema.additionalProperties, [...steps, { kind: "values", name: "" }]);
  }
}

function checksOf(graph: SchemaGraph, schema: Schema): Check[] {
  const items = schema.items === undefined ? undefined : graph.resolve(schema.items);
  return [
    ...(schema["x-gw-format"] === "regex" ? [REGEX] : []),
    ...(items?.["x-gw-format"] === "htpasswd" ? [HTPASSWD] : []),
    ...(schema["x-gw-reserved"] ?? []).map((name): Check => ({
      leaf: (value) => `!('${name}' in ${value})`,
      message: (path) => `${path}: the gateway sets ${name} itself: a policy that sets it is not applied`,
      action: "Warn",
    })),
  ];
}

/** A pattern that does not compile makes the expression fail, and failurePolicy Fail rejects the object. */
const REGEX: Check = {
  leaf: (value) => `''.matches(${value}) in [true, false]`,
  message: (path) => `${path}: must be a regular expression of RE2`,
  action: "Deny",
};

/**
 * Tests a htpasswd list: each line begins with a name, and the names are distinct. `[names].all(names, …)` binds the
 * list of names to a variable; computing it again for each line would exceed the cost limit of a rule.
 */
const HTPASSWD: Check = {
  leaf: (value) => {
    const names = `${value}.map(a, a.substring(0, a.indexOf(':')))`;
    const isDistinct = "names.all(a, names.indexOf(a) == names.lastIndexOf(a))";
    return `${value}.all(a, a.indexOf(':') > 0) && [${names}].all(names, ${isDistinct})`;
  },
  message: (path) => `${path}: each line must be a name, a colon and a hash, and no two may have the same name`,
  action: "Deny",
};

function nested(value: string, steps: readonly Step[], leaf: Leaf): string {
  const [step, ...rest] = steps;
  if (step === undefined) return leaf(value);
  const variable = `v${steps.length}`;
  switch (step.kind) {
    case "field": {
      const field = `${value}.${celField(step.name)}`;
      return `!has(${field}) || (${nested(field, rest, leaf)})`;
    }
    case "items":
      return `${value}.all(${variable}, ${nested(variable, rest, leaf)})`;
    case "values":
      return `${value}.all(${variable}, ${nested(`${value}[${variable}]`, rest, leaf)})`;
  }
}

function pathOf(steps: readonly Step[]): string {
  return steps.reduce(
    (path, { kind, name }) => path + (kind === "field" ? `.${name}` : kind === "items" ? "[]" : "{}"),
    "spec",
  );
}

interface PolicyOptions {
  readonly plural: string;
  readonly action: "Deny" | "Warn";
  readonly validations: readonly Validation[];
}

function policyAndBinding({ group, version }: KindsFile, { plural, action, validations }: PolicyOptions): object[] {
  const name = `${plural}.${action === "Deny" ? "" : "warnings."}${group}`;
  const metadata = { name, labels: { "app.kubernetes.io/name": "gwproxy" } };
  const apiVersion = "admissionregistration.k8s.io/v1";
  return [
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicy",
      metadata,
      spec: {
        failurePolicy: "Fail",
        matchConstraints: {
          resourceRules: [
            { apiGroups: [group], apiVersions: [version], operations: ["CREATE", "UPDATE"], resources: [plural] },
          ],
        },
        validations,
      },
    },
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata,
      spec: { policyName: name, validationActions: [action] },
    },
  ];
}
