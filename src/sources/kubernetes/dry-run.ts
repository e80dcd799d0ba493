/**
 * Asks an API server for its verdict on an object without storing it: a dry run of creating the object, or of replacing
 * the existing one. `gwproxy validate` uses it. Schema, validation rules, admission plugins and webhooks all take part,
 * as in a real request (https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run).
 */
import type { KubeObject } from "../../api/object.ts";
import { SourceError } from "../../lib/errors.ts";
import { ApiError, isStatus } from "./api-error.ts";
import type { KubernetesClient, KubernetesRequest } from "./client.ts";

export interface ServerViolation {
  /** Field path such as "spec.rules[0].name"; "" for the object itself. */
  readonly path: string;
  readonly severity: "error" | "warning";
  readonly reason: string;
  readonly message: string;
  readonly suggestion: string;
}

export interface DryRun {
  /**
   * Returns all errors and warnings of the server about the object.
   * @throws SourceError when the server cannot be asked
   */
  check(object: KubeObject): Promise<ServerViolation[]>;
}

interface Resource {
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Text of a cause that only follows from another cause and is left out. */
const CONSEQUENCE = "some validation rules were not checked";
const STRICT = /strict decoding error: ([\s\S]*)$/;

export function createDryRun(client: KubernetesClient): DryRun {
  const versions = new Map<string, Promise<ReadonlyMap<string, Resource> | undefined>>();
  const resourcesOf = (apiVersion: string): Promise<ReadonlyMap<string, Resource> | undefined> => {
    const known = versions.get(apiVersion) ?? discover(client, apiVersion);
    versions.set(apiVersion, known);
    return known;
  };
  return {
    check: async (object) => {
      const { apiVersion, kind, metadata } = object;
      const resource = (await resourcesOf(apiVersion))?.get(kind);
      if (resource === undefined) return [notServed(object)];
      const base = `${root(apiVersion)}${resource.namespaced ? `/namespaces/${metadata.namespace ?? "default"}` : ""}`;
      return dryRun(client, `${base}/${resource.plural}`, object);
    },
  };
}

function root(apiVersion: string): string {
  return apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}

async function discover(
  client: KubernetesClient,
  apiVersion: string,
): Promise<ReadonlyMap<string, Resource> | undefined> {
  try {
    const list = await client.request({ method: "GET", path: root(apiVersion) });
    // The answer is an APIResourceList, in which the names of subresources contain a slash.
    const { resources } = list as { resources: { name: string; kind: string; namespaced: boolean }[] };
    const whole = resources.filter(({ name }) => !name.includes("/"));
    return new Map(whole.map(({ name, kind, namespaced }) => [kind, { plural: name, namespaced }]));
  } catch (error) {
    if (isStatus(error, 404)) return undefined;
    throw error;
  }
}

function notServed({ apiVersion, kind }: KubeObject): ServerViolation {
  return {
    path: "kind",
    severity: "error",
    reason: "NotServed",
    message: `the API server has no kind ${kind} in ${apiVersion}`,
    suggestion: "apply the CRDs of the kind first",
  };
}

/**
 * Asks with strict field validation. Unknown fields make the server stop before it checks the rest, so it is then asked
 * a second time without them.
 */
async function dryRun(client: KubernetesClient, path: string, object: KubeObject): Promise<ServerViolation[]> {
  const strict = await ask(client, path, object, "Strict");
  if (!strict.some(({ reason }) => reason === "StrictDecoding")) return strict;
  return [...strict, ...(await ask(client, path, object, "Ignore"))];
}

async function ask(
  client: KubernetesClient,
  path: string,
  object: KubeObject,
  fieldValidation: "Strict" | "Ignore",
): Promise<ServerViolation[]> {
  const warnings: ServerViolation[] = [];
  const request = (rest: Pick<KubernetesRequest, "method" | "path" | "body">): Promise<unknown> => {
    // Every response repeats all warnings, so only those of the last one count.
    warnings.length = 0;
    const query = { dryRun: "All", fieldManager: "gwproxy-validate", fieldValidation };
    return client.request({ ...rest, query, onWarning: (text) => void warnings.push(warningOf(text)) });
  };
  try {
    await request({ method: "POST", path, body: object });
  } catch (error) {
    if (!isStatus(error, 409)) return [...violationsOf(error, object), ...warnings];
    const replaced = await replace(client, `${path}/${object.metadata.name}`, object, request);
    return [...replaced, ...warnings];
  }
  return warnings;
}

/** Replaces the existing object in a dry run, so that transition rules see its old value. */
async function replace(
  client: KubernetesClient,
  path: string,
  object: KubeObject,
  request: (rest: Pick<KubernetesRequest, "method" | "path" | "body">) => Promise<unknown>,
): Promise<ServerViolation[]> {
  try {
    const live = (await client.request({ method: "GET", path })) as KubeObject; // the API server stores only objects
    const { resourceVersion = "" } = live.metadata;
    await request({ method: "PUT", path, body: { ...object, metadata: { ...object.metadata, resourceVersion } } });
    return [];
  } catch (error) {
    return violationsOf(error, object);
  }
}

/**
 * Reads the violations from a rejection.
 * @throws the error itself when it is not a verdict on the object
 */
function violationsOf(error: unknown, { metadata }: KubeObject): ServerViolation[] {
  if (!(error instanceof ApiError) || error.status === 0 || error.status === 401 || error.status >= 500) throw error;
  const { status, reason, causes, words } = error;
  const strict = STRICT.exec(words)?.[1];
  if (strict !== undefined) return strictViolations(strict);
  if (status === 403 && !words.includes("denied") && / cannot (create|update|get) resource /.test(words)) {
    throw new SourceError(`the API server does not let us ask: ${words}`, { cause: error });
  }
  if (status === 404 && words.startsWith("namespaces ")) {
    const message = `not asked: the namespace ${metadata.namespace ?? "default"} does not exist on the API server`;
    return [
      { path: "metadata.namespace", severity: "warning", reason, message, suggestion: "create the namespace first" },
    ];
  }
  const violations = causes
    .filter(({ message }) => !message.includes(CONSEQUENCE))
    .map((cause): ServerViolation =>
      violation(cause.field === "<nil>" ? "" : cause.field, cause.reason, cause.message),
    );
  return violations.length > 0 ? violations : [violation("", reason, words === "" ? error.message : words)];
}

/** Parses messages such as `unknown field "spec.a", duplicate field "spec.b"`. */
function strictViolations(text: string): ServerViolation[] {
  return [...text.matchAll(/(unknown|duplicate) field "([^"]+)"/g)].map(([words, , path = ""]) =>
    violation(path, "StrictDecoding", words),
  );
}

function warningOf(text: string): ServerViolation {
  return { ...violation("", "Warning", text), severity: "warning" };
}

function violation(path: string, reason: string, message: string): ServerViolation {
  return { path, severity: "error", reason, message, suggestion: "" };
}
