/**
 * Defines the keys of resources. One user object becomes one resource, and its key identifies the object; a child names
 * its parent by key. Keys are opaque to users, but stay readable because dumps show them.
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

/**
 * @param gateway "namespace/name"
 * @param set "namespace/name" of the ListenerSet
 */
export function setListenerKey(gateway: string, set: string, section: string): string {
  return `${gateway}.${set}.${section}`;
}

/** @param gateway "namespace/name" */
export function modelCatalogKey(gateway: string, configMap: string, entry: string): string {
  return `modelcatalog/${gateway}/${configMap}/${entry}`;
}

/** @param kind kind of the route, such as "HTTPRoute" */
export function routeKey(kind: string, namespace: string, name: string): string {
  return `${kind.toLowerCase()}/${namespace}/${name}`;
}

/**
 * Returns the key of the routes that one route delegates to.
 * @param selector a name, "*" or "label=value"
 */
export function routeGroupKey(
  parent: { readonly namespace: string; readonly name: string },
  { namespace, selector }: { readonly namespace: string; readonly selector: string },
): string {
  return `httproutegroup/${parent.namespace}/${parent.name}/${namespace}/${selector}`;
}

export function backendKey(namespace: string, name: string): string {
  return `backend/${namespace}/${name}`;
}

/** Returns the key of a Service port, which its Backend and its Endpoints share. */
export function servicePortKey(namespace: string, name: string, port: number): string {
  return `service/${namespace}/${name}:${port}`;
}

/** Returns the key of an InferencePool, which its Backend and its Endpoints share. */
export function inferencePoolKey(namespace: string, name: string): string {
  return `inferencepool/${namespace}/${name}`;
}

/** Decides whether `traffic` policies may target the backend with this key. */
export function acceptsTrafficPolicies(key: string): boolean {
  return key.startsWith("inferencepool/");
}

/** Returns the key of the policy that holds a Gateway's client certificate for backends. */
export function gatewayClientKey(namespace: string, name: string): string {
  return `gateway-client/${namespace}/${name}`;
}

/** Returns the key of a BackendTLSPolicy, which is sent as an ordinary policy on backends. */
export function tlsPolicyKey(namespace: string, name: string): string {
  return `backendtlspolicy/${namespace}/${name}`;
}

export function policyKey(namespace: string, name: string): string {
  return `policy/${namespace}/${name}`;
}

/** Returns the key of the Backend that stands for the models of a listener or of a route rule. @param place its key */
export function modelsKey(place: string): string {
  return `models/${place}`;
}

export function modelKey(namespace: string, name: string): string {
  return `model/${namespace}/${name}`;
}
