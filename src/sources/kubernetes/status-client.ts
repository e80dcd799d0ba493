/**
 * Reads and writes the status subresource. It implements the StatusClient of src/status; their types match
 * structurally, and neither module imports the other. Reads use the watch's cache first, so that a restart does not
 * read every object again.
 */
import type { KubeObject, ObjectId } from "../../api/object.ts";
import { SourceError } from "../../lib/errors.ts";
import { isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";
import { apiVersionOf, objectPath, type WatchedKind } from "./kinds.ts";
import { normalizeObject } from "./normalize.ts";

export interface KubernetesStatusClient {
  read(id: ObjectId, isFresh: boolean): Promise<KubeObject | undefined>;
  apply(id: ObjectId, status: Readonly<Record<string, unknown>>): Promise<"written" | "gone">;
  replace(
    id: ObjectId,
    resourceVersion: string,
    status: Readonly<Record<string, unknown>>,
  ): Promise<"written" | "conflict" | "gone">;
}

export interface KubernetesStatusOptions {
  readonly client: KubernetesClient;
  readonly kinds: readonly WatchedKind[];
  /** Owner of the fields in server-side apply: the controller name. */
  readonly fieldManager: string;
  /** Returns an object as last seen; undefined leads to a read from the server. */
  current(id: ObjectId): KubeObject | undefined;
}

export function createKubernetesStatusClient(options: KubernetesStatusOptions): KubernetesStatusClient {
  const { client, kinds, fieldManager, current } = options;

  /** Returns the version in which the object was read, or the preferred one. */
  const addressOf = (id: ObjectId): { kind: WatchedKind; version: string } => {
    const kind = kinds.find((one) => one.kind === id.kind && one.group === id.group);
    if (kind === undefined) throw new SourceError(`the status of a ${id.kind} in the group "${id.group}" is not ours`);
    const seen = current(id)?.apiVersion;
    return { kind, version: seen === undefined ? kind.versions[0] : seen.slice(seen.indexOf("/") + 1) };
  };

  const patch = async (
    id: ObjectId,
    contentType: string,
    query: Record<string, string>,
    body: object,
  ): Promise<void> => {
    const { kind, version } = addressOf(id);
    const path = objectPath(kind, version, id, "status");
    await client.request({ method: "PATCH", path, query: { fieldManager, ...query }, contentType, body });
  };

  return {
    async read(id, isFresh) {
      const known = isFresh ? undefined : current(id);
      if (known !== undefined) return known;
      const { kind, version } = addressOf(id);
      try {
        const raw = await client.request({ method: "GET", path: objectPath(kind, version, id) });
        return normalizeObject(raw, kind, version);
      } catch (error) {
        if (isStatus(error, 404)) return undefined;
        throw error;
      }
    },
    async apply(id, status) {
      const { kind, version } = addressOf(id);
      const metadata = { name: id.name, ...(kind.namespaced ? { namespace: id.namespace } : {}) };
      const body = { apiVersion: apiVersionOf(kind.group, version), kind: kind.kind, metadata, status };
      try {
        await patch(id, "application/apply-patch+yaml", { force: "true" }, body);
        return "written";
      } catch (error) {
        if (isStatus(error, 404)) return "gone";
        throw error;
      }
    },
    async replace(id, resourceVersion, status) {
      try {
        // With the resourceVersion in the patch, the server refuses it when the object has changed since it was read.
        await patch(id, "application/merge-patch+json", {}, { metadata: { resourceVersion }, status });
        return "written";
      } catch (error) {
        if (isStatus(error, 409)) return "conflict";
        if (isStatus(error, 404)) return "gone";
        throw error;
      }
    },
  };
}
