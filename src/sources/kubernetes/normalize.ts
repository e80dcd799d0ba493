/**
 * Turns what the API server sends into the object that other modules see: with apiVersion and kind, without
 * bookkeeping, frozen. list.ts, watch.ts and the clients use it.
 */
import type { KubeObject } from "../../api/object.ts";
import { SourceError } from "../../lib/errors.ts";
import { deepFreeze } from "../../lib/deep-freeze.ts";
import { apiVersionOf, type WatchedKind } from "./kinds.ts";

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * Takes ownership of the parsed JSON, which it changes and freezes.
 * @throws SourceError when the value is not an object with a name
 */
export function normalizeObject(raw: unknown, kind: WatchedKind, version: string): KubeObject {
  const object = asRecord(raw);
  const metadata = asRecord(object?.["metadata"]);
  if (object === undefined || typeof metadata?.["name"] !== "string") {
    throw new SourceError(`the API server sent a ${kind.kind} without a name`);
  }
  // Managed fields are about half of an object's bytes. The last-applied annotation is a second copy of a Secret's
  // values.
  delete metadata["managedFields"];
  const annotations = asRecord(metadata["annotations"]);
  if (annotations !== undefined) delete annotations[LAST_APPLIED];
  if (kind.omitsSpec === true) delete object["spec"];
  // Lists of built-in kinds leave both out of their items.
  object["apiVersion"] = apiVersionOf(kind.group, version);
  object["kind"] = kind.kind;
  return deepFreeze(object as unknown as KubeObject); // the name is checked above; the API server validated the rest
}

function asRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}
