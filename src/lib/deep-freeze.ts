/** Freezes plain data through and through, so that no room can change what another one holds. Iterative: depth is no danger. */
export function deepFreeze<T>(value: T): T {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== "object" || next === null || Object.isFrozen(next)) continue;
    Object.freeze(next);
    for (const child of Object.values(next)) if (typeof child === "object" && child !== null) open.push(child);
  }
  return value;
}
