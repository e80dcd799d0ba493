/** How the hostnames of listeners and routes meet (Gateway API: HTTPRoute hostnames). "" and "*.x" are wildcards. */

/** @returns the hosts that both sides accept: the narrower of the two. undefined when they do not meet */
export function intersectHostname(listener: string, route: string): string | undefined {
  if (listener === "") return route;
  if (route === "" || listener === route) return listener;
  if (covers(listener, route)) return route;
  if (covers(route, listener)) return listener;
  return undefined;
}

/**
 * @param hostnames of the route; empty: whatever the listener accepts
 * @returns undefined when nothing is left; an empty list means every host of the listener
 */
export function intersectHostnames(listener: string, hostnames: readonly string[]): string[] | undefined {
  if (hostnames.length === 0) return [];
  const found = new Set<string>();
  for (const hostname of hostnames) {
    const host = intersectHostname(listener, hostname.toLowerCase());
    if (host !== undefined) found.add(host);
  }
  return found.size === 0 ? undefined : [...found];
}

function covers(wildcard: string, host: string): boolean {
  return wildcard.startsWith("*.") && host.endsWith(wildcard.slice(1)) && host.length > wildcard.length - 1;
}
