/**
 * Compares plain data structurally: objects, arrays, maps, sets, bytes and primitives. Functions compare by identity.
 */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) return Array.isArray(b) && sameItems(a, b);
  if (Array.isArray(b)) return false;
  if (a instanceof Uint8Array) return b instanceof Uint8Array && sameItems(a, b);
  if (a instanceof Map) return b instanceof Map && sameMaps(a, b);
  if (a instanceof Set) return b instanceof Set && a.size === b.size && [...a].every((item) => b.has(item));
  if (b instanceof Uint8Array || b instanceof Map || b instanceof Set) return false;
  return sameObjects(a, b);
}

function sameItems(a: ArrayLike<unknown>, b: ArrayLike<unknown>): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (!deepEqual(a[at], b[at])) return false;
  return true;
}

function sameMaps(a: ReadonlyMap<unknown, unknown>, b: ReadonlyMap<unknown, unknown>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) if (!b.has(key) || !deepEqual(value, b.get(key))) return false;
  return true;
}

function sameObjects(a: object, b: object): boolean {
  const left = Object.entries(a);
  if (left.length !== Object.keys(b).length) return false;
  const right = new Map(Object.entries(b));
  return left.every(([key, value]) => right.has(key) && deepEqual(value, right.get(key)));
}
