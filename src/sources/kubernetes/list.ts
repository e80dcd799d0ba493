/**
 * Lists all objects of a kind page by page, as one consistent state with the resourceVersion from which a watch can
 * continue. watch.ts uses it.
 */
import type { KubeObject } from "../../api/object.ts";
import { SourceError } from "../../lib/errors.ts";
import { isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";
import { collectionPath, metadataOnly, selectors, type WatchedKind } from "./kinds.ts";
import { normalizeObject } from "./normalize.ts";

const PAGE_SIZE = "500";

export interface Listing {
  readonly objects: readonly KubeObject[];
  readonly resourceVersion: string;
}

/** @throws ApiError; status 404 means that the server does not know the kind in this version */
export async function listKind(
  client: KubernetesClient,
  kind: WatchedKind,
  version: string,
  signal: AbortSignal,
): Promise<Listing> {
  try {
    return await listPages(client, kind, version, { signal, limit: PAGE_SIZE });
  } catch (error) {
    // 410 Gone: the server keeps the state behind a page token only for minutes. A list that takes longer is requested
    // unpaged.
    if (!isStatus(error, 410)) throw error;
    return listPages(client, kind, version, { signal });
  }
}

async function listPages(
  client: KubernetesClient,
  kind: WatchedKind,
  version: string,
  { signal, limit }: { signal: AbortSignal; limit?: string },
): Promise<Listing> {
  const path = collectionPath(kind, version);
  const objects: KubeObject[] = [];
  let next: string | undefined;
  for (;;) {
    const query: Record<string, string> = {
      ...selectors(kind),
      ...(limit === undefined ? {} : { limit }),
      ...(next === undefined ? {} : { continue: next }),
    };
    const page = (await client.request({
      method: "GET",
      path,
      query,
      signal,
      ...metadataOnly(kind, "PartialObjectMetadataList"),
    })) as ListPage; // members are checked below
    const { resourceVersion, continue: more } = page.metadata ?? {};
    if (!Array.isArray(page.items) || typeof resourceVersion !== "string") {
      throw new SourceError(`GET ${path}: the answer is no list`);
    }
    for (const item of page.items) objects.push(normalizeObject(item, kind, version));
    if (more === undefined || more === "") return { objects, resourceVersion };
    next = more;
  }
}

interface ListPage {
  readonly metadata?: { readonly resourceVersion?: unknown; readonly continue?: string };
  readonly items?: unknown;
}
