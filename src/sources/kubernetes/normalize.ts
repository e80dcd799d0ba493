/** Makes of what the API server sends the object that the other rooms see: complete in name, without ballast, frozen. */
import type { KubeObject } from "../../api/object.ts";
import { SourceError } from "../../lib/errors.ts";
import { deepFreeze } from "../../lib/deep-freeze.ts";
import { apiVersionOf, type WatchedKind } from "./kinds.ts";

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * Takes over the parsed JSON: it is changed and frozen.
 * @throws SourceError when it is no object with a name
 */
export function normalizeObject(raw: unknown, kind: WatchedKind, version: string): KubeObject {
  const object = asRecord(raw);
  const metadata = asRecord(object?.["metadata"]);
  if (object === undefined || typeof metadata?.["name"] !== "string") {
    throw new SourceError(`the API server sent a ${kind.kind} without a name`);
  }
  // Half of an object's bytes are bookkeeping of who set which field, and a second copy of a Secret is one too many.
  delete metadata["managedFields"];
  const annotations = asRecord(metadata["annotations"]);
  if (annotations !== undefined) delete annotations[LAST_APPLIED];
  // Lists of built-in kinds leave both out of their items.
  object["apiVersion"] = apiVersionOf(kind.group, version);
  object["kind"] = kind.kind;
  return deepFreeze(object as unknown as KubeObject); // name checked above; the rest is what the API server validated
}

function asRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}
