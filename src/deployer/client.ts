/** The Kubernetes operations that the deployer needs. Failures are thrown, and the deployer retries. */
import type { KubeObject, ObjectId } from "../api/object.ts";
import type { Manifest } from "./objects/context.ts";

export interface ObjectClient {
  /**
   * Applies an object server-side with the controller's field manager, and takes over fields that other managers hold.
   * @returns the object as the server stored it
   */
  apply(manifest: Manifest): Promise<KubeObject>;
  /** @returns undefined when there is none */
  read(id: ObjectId): Promise<KubeObject | undefined>;
  /** Like read, for kinds that may be written and not read. @returns undefined when there is none */
  inspect(id: ObjectId): Promise<KubeObject | undefined>;
  /** Deletes this very object. One that is gone, or was created anew in the meantime, is left alone. */
  remove(object: KubeObject): Promise<void>;
}
