/**
 * Keeps data of this program in one Secret, such as certificates. runtime/webhook.ts and controller/xds-certificates.ts
 * use it. Reads return the whole Secret; writes replace only the version that was read (optimistic concurrency).
 */
import { isStatus, withoutValues } from "./api-error.ts";
import { SourceError } from "../../lib/errors.ts";
import type { KubernetesClient } from "./client.ts";
import { ownedBy, type ObjectOwner } from "./owner.ts";

interface StoredSecret {
  /** Decoded texts by entry. */
  readonly data: Readonly<Record<string, string>>;
  readonly resourceVersion: string;
}

export interface SecretStore {
  /** @returns undefined when the Secret does not exist */
  read(): Promise<StoredSecret | undefined>;
  /**
   * @param replaces the resourceVersion that was read; undefined when there was no Secret
   * @returns "conflict" when another writer was faster
   */
  write(data: Readonly<Record<string, string>>, replaces: string | undefined): Promise<"written" | "conflict">;
}

export interface SecretStoreOptions {
  readonly namespace: string;
  readonly name: string;
  /** Type of the Secret: "Opaque", "kubernetes.io/tls", … */
  readonly type: string;
  /** Object with which the Secret is removed; undefined when it stays. */
  readonly owner?: ObjectOwner | undefined;
}

export function createSecretStore(client: KubernetesClient, options: SecretStoreOptions): SecretStore {
  const { namespace, name, type, owner } = options;
  const collection = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
  const path = `${collection}/${encodeURIComponent(name)}`;
  return {
    async read() {
      try {
        return decode(await client.request({ method: "GET", path }));
      } catch (error) {
        if (isStatus(error, 404)) return undefined;
        throw error;
      }
    },
    async write(data, replaces) {
      const version = replaces === undefined ? {} : { resourceVersion: replaces };
      const metadata = { name, namespace, ...ownedBy(owner), ...version };
      const body = { apiVersion: "v1", kind: "Secret", type, metadata, data: encode(data) };
      try {
        await (replaces === undefined
          ? client.request({ method: "POST", path: collection, body })
          : client.request({ method: "PUT", path, body }));
        return "written";
      } catch (error) {
        // 404 on a replacement means that the Secret was deleted in the meantime; the next read will find that. On
        // creation it means that the namespace is missing, which is not a conflict.
        const isDeleted = replaces !== undefined && isStatus(error, 404);
        if (isStatus(error, 409) || isDeleted) return "conflict";
        throw withoutValues(error);
      }
    },
  };
}

function encode(data: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")]));
}

function decode(raw: unknown): StoredSecret {
  const { metadata, data } = raw as { metadata?: { resourceVersion?: unknown }; data?: unknown }; // checked below
  if (typeof metadata?.resourceVersion !== "string") throw new SourceError("a Secret without a version");
  // the API server validated the values as base64
  const entries = Object.entries((data ?? {}) as Record<string, string>);
  return {
    resourceVersion: metadata.resourceVersion,
    data: Object.fromEntries(entries.map(([key, text]) => [key, Buffer.from(text, "base64").toString("utf8")])),
  };
}
