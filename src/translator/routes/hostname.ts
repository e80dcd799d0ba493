/**
 * Intersects the hostnames of listeners and routes (Gateway API, HTTPRoute `hostnames`). `attach.ts` and
 * `hostname-conflicts.ts` use it. "" matches any host, and "*.x" every subdomain of x.
 */

/** @returns the hosts that both sides accept, which is the narrower of the two, or undefined when there are none */
export function intersectHostname(listener: string, route: string): string | undefined {
  if (listener === "") return route;
  if (route === "" || listener === route) return listener;
  if (covers(listener, route)) return route;
  if (covers(route, listener)) return listener;
  return undefined;
}

/**
 * @param hostnames hostnames of the route; an empty list accepts every host of the listener
 * @returns undefined when no host is left; an empty list means every host of the listener
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
