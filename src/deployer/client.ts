/** What the deployer needs of a Kubernetes API. Failures are thrown and tried again. */
import type { KubeObject, ObjectId } from "../api/object.ts";
import type { Manifest } from "./context.ts";

export interface ObjectClient {
  /** Server-side apply with our field manager, taking fields over where others hold them. @returns the object as it is then */
  apply(manifest: Manifest): Promise<KubeObject>;
  /** @returns undefined when there is none */
  read(id: ObjectId): Promise<KubeObject | undefined>;
  /** Deletes this very object; one that is gone, or was made anew meanwhile, is left alone. */
  remove(object: KubeObject): Promise<void>;
}
