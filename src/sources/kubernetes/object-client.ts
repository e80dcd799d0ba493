/**
 * Applies, reads and deletes whole objects. It implements the ObjectClient of src/deployer; their types match
 * structurally, and neither module imports the other.
 */
import { objectId, type KubeObject, type ObjectId } from "../../api/object.ts";
import { SourceError } from "../../lib/errors.ts";
import { isStatus, withoutValues } from "./api-error.ts";
import type { KubernetesClient, KubernetesRequest } from "./client.ts";
import { objectPath, type WatchedKind } from "./kinds.ts";
import { normalizeObject } from "./normalize.ts";

export interface KubernetesObjectClient {
  apply(manifest: KubeObject): Promise<KubeObject>;
  read(id: ObjectId): Promise<KubeObject | undefined>;
  inspect(id: ObjectId): Promise<KubeObject | undefined>;
  remove(object: KubeObject): Promise<void>;
}

export interface KubernetesObjectOptions {
  readonly client: KubernetesClient;
  readonly kinds: readonly WatchedKind[];
  /** Owner of the fields in server-side apply: the controller name. */
  readonly fieldManager: string;
}

export function createKubernetesObjectClient(options: KubernetesObjectOptions): KubernetesObjectClient {
  const { client, kinds, fieldManager } = options;

  const kindOf = (id: ObjectId): WatchedKind => {
    const kind = kinds.find((one) => one.kind === id.kind && one.group === id.group);
    if (kind === undefined) throw new SourceError(`a ${id.kind} in the group "${id.group}" is not ours to write`);
    return kind;
  };
  const pathOf = (id: ObjectId): string => objectPath(kindOf(id), kindOf(id).versions[0], id);

  /** @returns undefined for an object that does not exist */
  const ask = async (id: ObjectId, request: KubernetesRequest): Promise<KubeObject | undefined> => {
    const kind = kindOf(id);
    try {
      return normalizeObject(await client.request(request), kind, kind.versions[0]);
    } catch (error) {
      if (isStatus(error, 404)) return undefined;
      throw error;
    }
  };

  return {
    async apply(manifest) {
      const id = objectId(manifest);
      const kind = kindOf(id);
      const query = { fieldManager, force: "true" };
      const contentType = "application/apply-patch+yaml";
      try {
        const raw = await client.request({ method: "PATCH", path: pathOf(id), query, contentType, body: manifest });
        return normalizeObject(raw, kind, kind.versions[0]);
      } catch (error) {
        throw id.kind === "Secret" ? withoutValues(error) : error;
      }
    },
    read: (id) => ask(id, { method: "GET", path: pathOf(id) }),
    // The dry run of a patch that changes nothing answers with the object, and needs the right to patch alone.
    inspect: (id) =>
      ask(id, {
        method: "PATCH",
        path: pathOf(id),
        query: { fieldManager, dryRun: "All" },
        contentType: "application/merge-patch+json",
        body: {},
      }),
    async remove(object) {
      const { uid } = object.metadata;
      const preconditions = uid === undefined ? {} : { uid };
      const body = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background", preconditions };
      try {
        await client.request({ method: "DELETE", path: pathOf(objectId(object)), body });
      } catch (error) {
        // 409: the UID precondition failed. Another object has the name now, and its deletion was not requested.
        if (!isStatus(error, 404) && !isStatus(error, 409)) throw error;
      }
    },
  };
}
