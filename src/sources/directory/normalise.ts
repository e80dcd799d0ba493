/**
 * Adds to a parsed document what an API server would add on creation: namespace, creation timestamp, the base64 form of
 * a Secret's `stringData`, and the defaults of its kind. check.ts uses it. The result is a frozen object, or the parts
 * that are missing.
 */
import type { KubeObject } from "../../api/object.ts";
import { deepFreeze } from "../../lib/deep-freeze.ts";
import { isRecord } from "../../lib/is-record.ts";
import { KINDS } from "../../../generated/kinds.ts";

export type ApplyDefaults = <T>(groupKind: string, object: T) => T;

export interface ObjectError {
  readonly path: string;
  readonly message: string;
}

/** Files have no creation time. With one time for all of them, ties between objects are decided by their names. */
const EPOCH = "1970-01-01T00:00:00Z";
const DEFAULT_NAMESPACE = "default";
const NAME = /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function normalise(
  value: Readonly<Record<string, unknown>>,
  applyDefaults: ApplyDefaults,
): KubeObject | readonly ObjectError[] {
  const errors = envelopeErrors(value);
  if (errors.length > 0) return errors;
  // `envelopeErrors` has checked that apiVersion, kind and metadata.name are texts. The copy separates values that YAML
  // aliases share.
  const object = structuredClone(value) as unknown as Mutable;
  object.metadata.creationTimestamp ??= EPOCH;
  if (isClusterScoped(object.apiVersion, object.kind)) delete object.metadata.namespace;
  else object.metadata.namespace ??= DEFAULT_NAMESPACE;
  if (object.apiVersion === "v1" && object.kind === "Secret") {
    const secretErrors = mergeStringData(object);
    if (secretErrors.length > 0) return secretErrors;
  }
  return deepFreeze(applyDefaults<KubeObject>(groupKindOf(object.apiVersion, object.kind), object));
}

export function groupKindOf(apiVersion: string, kind: string): string {
  const slash = apiVersion.indexOf("/");
  return `${slash < 0 ? "" : apiVersion.slice(0, slash)}/${kind}`;
}

interface Mutable {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; creationTimestamp?: string };
  [field: string]: unknown;
}

function envelopeErrors(value: Readonly<Record<string, unknown>>): ObjectError[] {
  const errors: ObjectError[] = [];
  for (const path of ["apiVersion", "kind"] as const) {
    if (typeof value[path] !== "string" || value[path] === "") errors.push({ path, message: "Required value" });
  }
  const metadata = isRecord(value["metadata"]) ? value["metadata"] : {};
  const { name, namespace } = metadata;
  if (name === undefined || name === null || name === "")
    errors.push({ path: "metadata.name", message: "Required value" });
  else if (!isName(name))
    errors.push({
      path: "metadata.name",
      message: "must be lower-case letters, digits, '-' and '.', at most 253 characters",
    });
  if (namespace === null) delete (metadata as { namespace?: unknown }).namespace;
  else if (namespace !== undefined && (!isName(namespace) || namespace.length > 63 || namespace.includes("."))) {
    errors.push({
      path: "metadata.namespace",
      message: "must be lower-case letters, digits and '-', at most 63 characters",
    });
  }
  return errors;
}

/** Merges `stringData` into `data`; `stringData` wins, as on the API server. The errors never contain a value. */
function mergeStringData(secret: Mutable): ObjectError[] {
  const errors: ObjectError[] = [];
  const data: Record<string, string> = {};
  for (const [key, value] of entries(secret["data"])) {
    if (typeof value === "string" && BASE64.test(value.replaceAll(/\s/g, ""))) data[key] = value.replaceAll(/\s/g, "");
    else errors.push({ path: `data.${key}`, message: "must be base64 text; plain text belongs in stringData" });
  }
  for (const [key, value] of entries(secret["stringData"])) {
    if (typeof value === "string") data[key] = Buffer.from(value, "utf8").toString("base64");
    else errors.push({ path: `stringData.${key}`, message: "must be text; put it in quotes" });
  }
  secret["data"] = data;
  delete secret["stringData"];
  return errors;
}

function entries(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : [];
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length <= 253 && NAME.test(value);
}

/**
 * The kinds that have no namespace. An API server could be asked for the scope, a file cannot; kinds that are not listed
 * count as namespaced.
 */
const CLUSTER_SCOPED = new Set([
  ...KINDS.filter(({ namespaced }) => !namespaced).map(({ group, kind }) => `${group}/${kind}`),
  "/Node",
  "/PersistentVolume",
  "apiextensions.k8s.io/CustomResourceDefinition",
  "rbac.authorization.k8s.io/ClusterRole",
  "rbac.authorization.k8s.io/ClusterRoleBinding",
  "admissionregistration.k8s.io/ValidatingWebhookConfiguration",
  "admissionregistration.k8s.io/MutatingWebhookConfiguration",
]);

function isClusterScoped(apiVersion: string, kind: string): boolean {
  const slash = apiVersion.indexOf("/");
  return CLUSTER_SCOPED.has(`${slash < 0 ? "" : apiVersion.slice(0, slash)}/${kind}`);
}
