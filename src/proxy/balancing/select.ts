/**
 * Weighted random choice among backends, for the rules of HTTP and TCP routes (BackendRef weights of the Gateway API).
 */

/** @returns undefined when all weights are zero */
export function createPicker<T>(
  choices: readonly { readonly weight: number; readonly value: T }[],
  random: () => number = Math.random,
): () => T | undefined {
  const usable = choices.filter(({ weight }) => weight > 0);
  const first = usable[0];
  if (first === undefined) return () => undefined;
  if (usable.length === 1) return () => first.value;
  const total = usable.reduce((sum, { weight }) => sum + weight, 0);
  return () => {
    let left = random() * total;
    for (const { weight, value } of usable) {
      left -= weight;
      if (left < 0) return value;
    }
    return first.value;
  };
}
