/**
 * Freezes plain data at every depth, so that no module can change what another one holds. It iterates, so deeply nested
 * data cannot exhaust the stack.
 */
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
