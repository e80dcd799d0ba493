/**
 * Finds routes by words. The searched text of a route is made once for each configuration, because 5,000 routes are
 * searched at every key press.
 */
import type { RouteData } from "../data.ts";

export interface SearchableRoute {
  readonly route: RouteData;
  /** In lower case. */
  readonly text: string;
}

export function indexRoutes(routes: readonly RouteData[]): SearchableRoute[] {
  return routes.map((route) => {
    const { kind, name, hostnames, rules } = route;
    const words = rules.flatMap(({ matches, backends }) => [...matches, ...backends]);
    return { route, text: [kind, name, ...hostnames, ...words].join(" ").toLowerCase() };
  });
}

/**
 * Returns the routes that contain every word of the filter, in any order and in upper or lower case.
 * @param listener key of a listener that has to accept them; empty for all
 */
export function filterRoutes(index: readonly SearchableRoute[], filter: string, listener: string): RouteData[] {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return index
    .filter(
      ({ route, text }) =>
        (listener === "" || route.listeners.includes(listener)) && words.every((word) => text.includes(word)),
    )
    .map(({ route }) => route);
}
