/** What an API server stores, kept and put back through etcd: api-server.ts makes a used server a fresh one this way. */

/** Base64 of a key → base64 of its value, as etcd's JSON gateway has them. */
export type Snapshot = ReadonlyMap<string, string>;

interface Range {
  readonly kvs?: readonly { readonly key: string; readonly value: string }[];
}

/** Everything below it belongs to the API server; the end is the next key that does not. */
const REGISTRY = { key: encode("/registry/"), range_end: encode("/registry0") };

/** @param url of a client port of etcd */
export async function takeSnapshot(url: string): Promise<Snapshot> {
  const { kvs = [] } = (await post(url, "range", REGISTRY)) as Range; // as etcd describes its gateway
  return new Map(kvs.map(({ key, value }) => [key, value]));
}

/** Resolves when etcd has the keys of the snapshot and no others; watches of the API server follow. */
export async function restoreSnapshot(url: string, snapshot: Snapshot): Promise<void> {
  const now = await takeSnapshot(url);
  for (const key of now.keys()) if (!snapshot.has(key)) await post(url, "deleterange", { key });
  for (const [key, value] of snapshot) if (now.get(key) !== value) await post(url, "put", { key, value });
}

async function post(url: string, operation: string, body: object): Promise<unknown> {
  const response = await fetch(`${url}/v3/kv/${operation}`, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd answers ${operation} with ${response.status}: ${await response.text()}`);
  return response.json();
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64");
}
