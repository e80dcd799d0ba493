/**
 * Keeps fetched documents in ConfigMaps of the controller's own namespace, one each, so that a restart needs no fetch.
 * The controller uses it. A document that cannot be kept is only fetched again, so failures are logged and no caller
 * waits for a write.
 */
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { DocumentStore, StoredDocument } from "../remote/documents.ts";
import { isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";
import { ownedBy, type ObjectOwner } from "./owner.ts";

export interface DocumentStoreOptions {
  readonly namespace: string;
  readonly fieldManager: string;
  /** Object with which the documents are removed; undefined when they stay. */
  readonly owner?: ObjectOwner | undefined;
  readonly log: Logger;
}

const LABEL = "app.kubernetes.io/component";
const COMPONENT = "jwks-store";
const PREFIX = "jwks-store-";

interface StoredMap {
  readonly metadata?: { readonly name?: string };
  readonly data?: { readonly document?: string; readonly fetchedAt?: string };
}

export function createDocumentStore(
  client: KubernetesClient,
  { namespace, fieldManager, owner, log }: DocumentStoreOptions,
): DocumentStore {
  const collection = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps`;
  let last: Promise<unknown> = Promise.resolve();

  /** Serialises the writes, so that the last state of a document is the one that stays. */
  function write(key: string, work: () => Promise<unknown>): void {
    last = last.then(work).catch((error: unknown) => {
      if (!isStatus(error, 404)) log.warn("a JWKS cannot be stored", { key, error: messageOf(error) });
    });
  }

  return {
    async load() {
      try {
        const query = { labelSelector: `${LABEL}=${COMPONENT}` };
        const list = (await client.request({ method: "GET", path: collection, query })) as { items?: StoredMap[] };
        return new Map((list.items ?? []).flatMap(entryOf)); // entryOf checks each member
      } catch (error) {
        log.warn("stored JWKS cannot be read", { namespace, error: messageOf(error) });
        return new Map();
      }
    },
    save({ key, url }, { text, fetchedAtMs }) {
      const name = PREFIX + key;
      const labels = { [LABEL]: COMPONENT, "app.kubernetes.io/name": "gwproxy" };
      const metadata = { name, namespace, labels, ...ownedBy(owner) };
      const data = { url, fetchedAt: new Date(fetchedAtMs).toISOString(), document: text };
      write(key, () =>
        client.request({
          method: "PATCH",
          path: `${collection}/${name}`,
          query: { fieldManager, force: "true" },
          contentType: "application/apply-patch+yaml",
          body: { apiVersion: "v1", kind: "ConfigMap", metadata, data },
        }),
      );
    },
    remove(key) {
      write(key, () => client.request({ method: "DELETE", path: `${collection}/${PREFIX}${key}` }));
    },
  };
}

/** Returns nothing for a ConfigMap that was edited so that it cannot be read. */
function entryOf({ metadata, data }: StoredMap): [string, StoredDocument][] {
  const { name = "" } = metadata ?? {};
  const { document, fetchedAt = "" } = data ?? {};
  const fetchedAtMs = Date.parse(fetchedAt);
  if (!name.startsWith(PREFIX) || document === undefined || Number.isNaN(fetchedAtMs)) return [];
  return [[name.slice(PREFIX.length), { text: document, fetchedAtMs }]];
}
