/**
 * Field paths as the API server writes them ("spec.rules[0].name"), and conversions to them. Checks and sources use it.
 */

/** Appends a member, or with a number an item, to `path`. */
export function childPath(path: string, step: string | number): string {
  if (typeof step === "number") return `${path}[${step}]`;
  return path === "" ? step : `${path}.${step}`;
}

/** Resolves a JSON pointer (RFC 6901) in `root` to its field path and value. */
export function resolvePointer(root: unknown, pointer: string): { path: string; value: unknown } {
  let path = "";
  let value = root;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    path = childPath(path, Array.isArray(value) ? Number(name) : name);
    value = memberOf(value, name);
  }
  return { path, value };
}

export function memberOf(value: unknown, name: string | number): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  // Arrays and plain objects can both be indexed by their own keys.
  return (value as Record<string | number, unknown>)[name];
}

/** Whether a field path overlaps a pattern: it names the same value, an ancestor of it, or a descendant. */
export function reaches(path: string, pattern: readonly string[]): boolean {
  const parts = path.split(/[.[\]]+/).filter((part) => part !== "");
  return parts.every((part, at) => at >= pattern.length || pattern[at] === "*" || pattern[at] === part);
}

/** Returns every text of `value` that a pattern matches; "*" is each item of a list or each value of a map. */
export function textsAt(
  value: unknown,
  pattern: readonly string[],
  path = "",
): { readonly path: string; readonly text: string }[] {
  return valuesAt(value, pattern, path).flatMap(({ path: where, value: text }) =>
    typeof text === "string" ? [{ path: where, text }] : [],
  );
}

interface Found {
  readonly path: string;
  readonly value: unknown;
}

/** Returns every existing value that a pattern matches. */
export function valuesAt(value: unknown, pattern: readonly string[], path = ""): Found[] {
  const found: Found[] = [];
  collect({ path, value }, pattern, 0, found);
  return found;
}

function collect(place: Found, pattern: readonly string[], at: number, found: Found[]): void {
  const { path, value } = place;
  const step = pattern[at];
  if (value === undefined) return;
  if (step === undefined) {
    found.push(place);
  } else if (step !== "*") {
    collect({ path: childPath(path, step), value: memberOf(value, step) }, pattern, at + 1, found);
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries())
      collect({ path: childPath(path, index), value: item }, pattern, at + 1, found);
  } else if (typeof value === "object" && value !== null) {
    for (const name of Object.keys(value))
      collect({ path: childPath(path, name), value: memberOf(value, name) }, pattern, at + 1, found);
  }
}
