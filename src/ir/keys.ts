/**
 * The names of resources. One user object is one resource, and its key says which; a child names its parent by key.
 * Keys are opaque to users but appear in dumps, so they stay readable.
 */
export function gatewayKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

export function bindKey(port: number, gateway: string): string {
  return `${port}/${gateway}`;
}

/** @param gateway "namespace/name" */
export function listenerKey(gateway: string, section: string): string {
  return `${gateway}.${section}`;
}

/** @param gateway "namespace/name" @param set the same of the ListenerSet */
export function setListenerKey(gateway: string, set: string, section: string): string {
  return `${gateway}.${set}.${section}`;
}

/** @param kind "HTTPRoute" and its siblings */
export function routeKey(kind: string, namespace: string, name: string): string {
  return `${kind.toLowerCase()}/${namespace}/${name}`;
}

export function backendKey(namespace: string, name: string): string {
  return `backend/${namespace}/${name}`;
}

/** A Service port: the key of its Backend and of its Endpoints. */
export function servicePortKey(namespace: string, name: string, port: number): string {
  return `service/${namespace}/${name}:${port}`;
}

/** What a Gateway shows to backends: a policy of its own. */
export function gatewayClientKey(namespace: string, name: string): string {
  return `gateway-client/${namespace}/${name}`;
}

/** A BackendTLSPolicy: a policy of backends in everything but its name. */
export function tlsPolicyKey(namespace: string, name: string): string {
  return `backendtlspolicy/${namespace}/${name}`;
}

export function policyKey(namespace: string, name: string): string {
  return `policy/${namespace}/${name}`;
}
