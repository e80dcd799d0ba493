/** Adapts the generated schema modules to the ApiSchema that the validator needs. */
import { FIELDS } from "../../generated/fields.ts";
import { KINDS } from "../../generated/kinds.ts";
import { RULES } from "../../generated/rules.ts";
import { SECRETS } from "../../generated/secrets.ts";
import { validators } from "../../generated/validators/index.js";
import { semanticViolations } from "./checks/semantics.ts";
import { reaches } from "./paths.ts";
import type { ApiSchema } from "./validator.ts";

/** Captures the component of `#/definitions/Component/additionalProperties`. */
const COMPONENT = /^#\/definitions\/([^/]+)\//;
/** The Gateway API serves its older objects under both versions, with one schema. */
const ALSO_SERVED: Readonly<Record<string, readonly string[]>> = { "gateway.networking.k8s.io": ["v1beta1"] };

const versions: ReadonlyMap<string, readonly string[]> = new Map(
  KINDS.map(({ group, kind, version }) => [`${group}/${kind}`, [...new Set([version, ...(ALSO_SERVED[group] ?? [])])]]),
);

export const generatedSchema: ApiSchema = {
  versionsOf: (groupKind) => versions.get(groupKind),
  kindsOf: (group) =>
    [...versions.keys()].filter((key) => key.startsWith(`${group}/`)).map((key) => key.slice(group.length + 1)),
  shapeErrors: (groupKind, object) => validators[groupKind]?.(object) ?? [],
  rulesOf: (groupKind) => RULES[groupKind],
  semanticViolations,
  knownFields: (_, { schemaPath }) => FIELDS[COMPONENT.exec(schemaPath)?.[1] ?? ""] ?? [],
  isSecret: (groupKind, path) => (SECRETS[groupKind] ?? []).some((pattern) => reaches(path, pattern)),
};
