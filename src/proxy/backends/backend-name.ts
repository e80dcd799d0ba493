/** Returns the name of a backend in logs and metrics: "namespace/name" for a GwBackend, the key for all others. */
export function backendName(key: string): string {
  return key.startsWith("backend/") ? key.slice("backend/".length) : key;
}
