/** What a backend is called in logs and metrics: a GwBackend "namespace/name", others by their key. */
export function backendName(key: string): string {
  return key.startsWith("backend/") ? key.slice("backend/".length) : key;
}
