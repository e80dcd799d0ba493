/**
 * Head sampling of traces: interprets the result of a sampling expression, and derives the number that a sampling ratio
 * is compared with.
 */

/** @param result of the expression: a boolean, or the ratio of requests to trace; other values trace nothing */
export function isSampled(result: unknown, draw: () => number): boolean {
  if (typeof result === "boolean") return result;
  if (typeof result !== "number" && typeof result !== "bigint") return false;
  if (result >= 1) return true;
  return result > 0 && draw() < result;
}

/**
 * Returns a number in [0, 1] from the low 56 bits of the trace ID, which are random (W3C Trace Context level 2, random
 * flag): every replica reaches the same decision.
 */
export function drawOf(traceId: string): number {
  return Number.parseInt(traceId.slice(-14), 16) / 2 ** 56;
}
