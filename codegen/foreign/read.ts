/** Reads foreign CRDs from a file of manifests and returns the schemas of their served versions. */
import { parseAllDocuments } from "yaml";
import { schemaError } from "../errors.ts";
import type { Schema } from "../schema.ts";

/** One served version of one kind. */
export interface ForeignKind {
  readonly file: string;
  readonly group: string;
  readonly kind: string;
  readonly version: string;
  readonly schema: Schema;
}

interface Definition {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly items?: unknown;
  readonly spec?: {
    readonly group?: unknown;
    readonly names?: { readonly kind?: unknown };
    readonly preserveUnknownFields?: unknown;
    readonly versions?: unknown;
  };
}

interface Version {
  readonly name?: unknown;
  readonly served?: unknown;
  readonly schema?: { readonly openAPIV3Schema?: unknown };
}

/**
 * Reads one file and skips objects that are not CRDs. @throws SchemaError for text that is not YAML, and for a CRD that
 * cannot be used
 */
export function readForeign(file: string, text: string): ForeignKind[] {
  return parseAllDocuments(text).flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw schemaError(file, `line ${error.linePos?.[0].line ?? 1}`, error.message);
    return kindsOf(file, document.toJS());
  });
}

function kindsOf(file: string, value: unknown): ForeignKind[] {
  if (typeof value !== "object" || value === null) return [];
  const { apiVersion, kind, items, spec } = value as Definition; // each member is checked where it is used
  if (kind === "List" && Array.isArray(items)) return items.flatMap((item) => kindsOf(file, item));
  if (kind !== "CustomResourceDefinition") return [];
  if (apiVersion !== "apiextensions.k8s.io/v1") {
    throw schemaError(file, "apiVersion", `${String(apiVersion)} is not read; convert it to apiextensions.k8s.io/v1`);
  }
  const name = spec?.names?.kind;
  if (typeof name !== "string" || !/^[A-Za-z][A-Za-z0-9]*$/.test(name)) {
    throw schemaError(file, "spec.names.kind", "must be the name of a kind");
  }
  const { group } = spec ?? {};
  if (typeof group !== "string" || !/^[a-z0-9][-a-z0-9.]*$/.test(group)) {
    throw schemaError(file, `${name}: spec.group`, "must be the name of a group");
  }
  if (spec?.preserveUnknownFields === true) {
    throw schemaError(
      file,
      `${name}: spec.preserveUnknownFields`,
      "is true: the schema does not say what objects hold",
    );
  }
  const versions = Array.isArray(spec?.versions) ? (spec.versions as readonly Version[]) : [];
  const served = versions.filter((version) => version.served === true);
  if (served.length === 0) throw schemaError(file, `${name}: spec.versions`, "no version is served");
  return served.map(({ name: version, schema }) => {
    if (typeof version !== "string" || !/^v[a-z0-9]+$/.test(version)) {
      throw schemaError(file, `${name}: spec.versions`, "a version has no name such as v1");
    }
    const root = schema?.openAPIV3Schema;
    if (typeof root !== "object" || root === null) {
      throw schemaError(file, `${name} ${version}`, "has no schema.openAPIV3Schema");
    }
    // findStructuralErrors checks the content of the schema, with a path for each error.
    return { file, group, kind: name, version, schema: root as Schema };
  });
}
