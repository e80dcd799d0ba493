/** Fetches an answer of the admin server for a view. */
import { useEffect, useState } from "preact/hooks";
import type { AdminClient } from "./admin-client.ts";
import { messageOf } from "./error-text.ts";

/** The answer, why there is none, or undefined while it is awaited. */
export type Fetched<T> = { readonly answer: T } | { readonly error: string } | undefined;

/**
 * Fetches a path, and fetches it again when the path or what it depends on changes.
 * @param read checks or narrows the answer; server and page are of one version
 * @param dependsOn an object that is another one after a change
 */
export function useJson<T>(
  { client, path, dependsOn }: { readonly client: AdminClient; readonly path: string; readonly dependsOn: object },
  read: (answer: unknown) => T,
): Fetched<T> {
  const [fetched, setFetched] = useState<Fetched<T>>(undefined);
  useEffect(() => {
    const aborted = new AbortController();
    client
      .fetchJson(path, aborted.signal)
      .then((answer) => setFetched({ answer: read(answer) }))
      .catch((error: unknown) => {
        if (!aborted.signal.aborted) setFetched({ error: messageOf(error) });
      });
    return () => aborted.abort();
  }, [client, path, dependsOn]);
  return fetched;
}
