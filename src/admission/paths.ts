/** Field paths as the API server writes them ("spec.rules[0].name"), and the way from other notations to them. */

/** Below `path`: a member, or with a number an item. */
export function childPath(path: string, step: string | number): string {
  if (typeof step === "number") return `${path}[${step}]`;
  return path === "" ? step : `${path}.${step}`;
}

/** A JSON pointer of `root` → its field path and the value there. */
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
  // Own members of arrays and plain objects alike.
  return (value as Record<string | number, unknown>)[name];
}

/** Whether a field path is what a pattern reaches; "*" in a pattern stands for any item or key. */
export function matchesPattern(path: string, pattern: readonly string[]): boolean {
  const parts = path.split(/[.[\]]+/).filter((part) => part !== "");
  return parts.length === pattern.length && pattern.every((step, at) => step === "*" || step === parts[at]);
}
