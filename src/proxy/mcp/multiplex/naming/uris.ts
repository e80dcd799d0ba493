/**
 * URIs of resources as clients see them. They carry their target in every prefix mode: `file:///x` of the target `docs`
 * is `docs+file:///x`, and `ui://x` is `ui://docs+x`, because clients recognise resources of user interfaces by that
 * scheme (MCP Apps). URI templates are treated alike. A relative reference has no scheme and stays as it is: with a
 * prefix it would become another relative reference.
 */
import type { Naming, NamedTarget, OwnedName } from "./names.ts";

const DELIMITER = "+";
const UI = "ui://";

/** RFC 3986, 3.1. */
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/;

/** Returns the URI or URI template of a target as clients see it. */
export function printUri({ name }: NamedTarget, uri: string): string {
  if (uri.startsWith(UI)) return `${UI}${name}${DELIMITER}${uri.slice(UI.length)}`;
  return SCHEME.test(uri) ? name + DELIMITER + uri : uri;
}

/**
 * Reads a URI or URI template that a client sent. One without a target belongs to the only target where there is one.
 * @returns undefined when no target can own it
 */
export function parseUri<T extends NamedTarget>(naming: Naming<T>, seen: string): OwnedName<T> | undefined {
  const start = seen.startsWith(UI) ? UI.length : 0;
  const at = seen.indexOf(DELIMITER, start);
  const target = at === -1 ? undefined : naming.find(seen.slice(start, at));
  const rest = seen.slice(at + 1);
  // `a+b` is a relative reference of the only target: with a prefix it would have a scheme behind the delimiter.
  if (target !== undefined && (start > 0 || SCHEME.test(rest))) return { target, name: start > 0 ? UI + rest : rest };
  return naming.only === undefined ? undefined : { target: naming.only, name: seen };
}
