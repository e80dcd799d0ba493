/** A kubeconfig with everything in the one file. */
import { readFile, writeFile } from "node:fs/promises";
import type { KeyPair } from "./certificates.ts";

export interface Access {
  /** "https://ADDRESS:PORT" */
  readonly server: string;
  /** Path of the authority's certificate. */
  readonly ca: string;
  readonly client: KeyPair;
}

/** @returns the path */
export async function writeKubeconfig(path: string, { server, ca, client }: Access): Promise<string> {
  const base64 = async (file: string): Promise<string> => (await readFile(file)).toString("base64");
  const user = {
    "client-certificate-data": await base64(client.cert),
    "client-key-data": await base64(client.key),
  };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server, "certificate-authority-data": await base64(ca) } }],
    users: [{ name: "user", user }],
    contexts: [{ name: "test", context: { cluster: "test", user: "user" } }],
    "current-context": "test",
  };
  await writeFile(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}
